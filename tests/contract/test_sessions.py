"""Exec requests that are rejected without asking any node."""

import pytest

from tests.contract.api import Api
from tests.contract.objects import pod

TWO = [{"name": "one", "image": "x"}, {"name": "two", "image": "x"}]


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        pytest.param("none", {}, '404 NotFound: pods "none" not found', id="no pod"),
        pytest.param("a", {}, "400 BadRequest: pod a does not have a host assigned", id="no node"),
        pytest.param(
            "a",
            {"container": "x"},
            "400 BadRequest: container x is not valid for pod a",
            id="no container",
        ),
        pytest.param(
            "b",
            {},
            (
                "400 BadRequest: a container name must be specified for pod b, choose one "
                "of: [one two]"
            ),
            id="which container",
        ),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_exec_without_a_running_container_is_rejected(
    api: Api, method: str, name: str, params: dict[str, str], said: str
) -> None:
    await api.create(api.path("pods"), pod("a"))
    await api.create(api.path("pods"), pod("b", containers=TWO))
    asked = {"command": "sh", "stdout": "true"} | params
    answer = await api.call(method, api.path("pods", f"{name}/exec"), **asked)
    assert api.failure_text(answer).replace("[] ", "") == said


async def test_exec_rejects_other_verbs(api: Api) -> None:
    await api.create(api.path("pods"), pod("a"))
    answer = await api.put(api.path("pods", "a/exec"), {})
    assert answer.code == 405
