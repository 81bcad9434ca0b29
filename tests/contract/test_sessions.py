"""Requests for streams of a pod that are rejected without asking any node."""

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
@pytest.mark.parametrize("subresource", ["exec", "attach"])
async def test_session_without_a_running_container_is_rejected(
    api: Api, subresource: str, method: str, name: str, params: dict[str, str], said: str
) -> None:
    await api.create(api.path("pods"), pod("a"))
    await api.create(api.path("pods"), pod("b", containers=TWO))
    asked = {"command": "sh", "stdout": "true"} | params
    answer = await api.call(method, api.path("pods", f"{name}/{subresource}"), **asked)
    assert api.failure_text(answer).replace("[] ", "") == said


async def test_exec_rejects_other_verbs(api: Api) -> None:
    await api.create(api.path("pods"), pod("a"))
    answer = await api.put(api.path("pods", "a/exec"), {})
    assert answer.code == 405


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("none", '404 NotFound: pods "none" not found', id="no pod"),
        pytest.param("a", "400 BadRequest: pod a does not have a host assigned", id="no node"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_port_forward_without_a_running_pod_is_rejected(
    api: Api, method: str, name: str, said: str
) -> None:
    await api.create(api.path("pods"), pod("a"))
    answer = await api.call(method, api.path("pods", f"{name}/portforward"))
    assert api.failure_text(answer).replace("[] ", "") == said


@pytest.mark.parametrize(
    ("params", "field", "said"),
    [
        pytest.param(
            {"tailLines": "-1"},
            "tailLines",
            "Invalid value: -1: must be greater than or equal to 0",
            id="tail",
        ),
        pytest.param(
            {"limitBytes": "0"},
            "limitBytes",
            "Invalid value: 0: must be greater than 0",
            id="limit",
        ),
        pytest.param(
            {"sinceSeconds": "0"},
            "sinceSeconds",
            "Invalid value: 0: must be greater than 0",
            id="since",
        ),
    ],
)
async def test_invalid_part_of_a_log_is_rejected(
    api: Api, params: dict[str, str], field: str, said: str
) -> None:
    await api.create(api.path("pods"), pod("a"))
    answer = await api.get(api.path("pods", "a/log"), **params)
    assert api.failure_text(answer) == (
        f'422 Invalid: [FieldValueInvalid {field}] PodLogOptions "a" is invalid: {field}: {said}'
    )


async def test_log_since_two_times_is_rejected(api: Api) -> None:
    await api.create(api.path("pods"), pod("a"))
    both = {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"}
    answer = await api.get(api.path("pods", "a/log"), **both)
    assert answer.code == 422
    assert "at most one of `sinceTime` or `sinceSeconds` may be specified" in answer.body["message"]
