"""Deliberate differences of the embedded server, each with its reason.

Both responses are asserted, so that a difference that has disappeared is noticed.
"""

from collections.abc import Awaitable, Callable

import pytest

from tests.contract.api import CRDS, Api
from tests.contract.definitions import definition, version_of
from tests.contract.objects import pod
from tests.local.apiserver.raw_client import Answer

Ask = Callable[[Api], Awaitable[Answer]]


async def yaml(api: Api) -> Answer:
    return await api.get(api.path("configmaps"), accept="application/yaml")


async def deployment(api: Api) -> Answer:
    return await api.get(api.path("deployments", group="apps/v1"))


async def costly_rule(api: Api) -> Answer:
    rules = [{"rule": "self.all(x, self.all(y, x == y))"}]
    items = {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"a": items}}
    crd = definition("costs", group="costs.dlctl.dev", versions=[version_of(schema)])
    return await api.post(CRDS, crd, dryRun="All")


async def priority(api: Api) -> Answer:
    return await api.post(api.path("pods"), pod(priorityClassName="nobody-defined-it"))


DIFFERENCES = [
    # Clients of jobs use JSON.
    pytest.param(yaml, 406, 200, id="answers in YAML"),
    # Nothing would use them.
    pytest.param(deployment, 404, 200, id="workload controllers"),
    # Costs are estimated to protect a server of many users.
    pytest.param(costly_rule, 201, 422, id="cost of rules"),
    # There are no admission plugins.
    pytest.param(priority, 201, 403, id="admission of priorities"),
]


@pytest.mark.parametrize(("ask", "embedded", "real"), DIFFERENCES)
async def test_known_difference_between_the_servers(
    gadget_api: Api, ask: Ask, embedded: int, real: int
) -> None:
    answer = await ask(gadget_api)
    assert answer.code == (real if gadget_api.is_real else embedded), answer.body
