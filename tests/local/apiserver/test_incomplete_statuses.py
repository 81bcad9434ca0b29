"""Statuses without fields that a typed server writes even if they are empty."""

import pytest

from dlctl.api.json_types import JSON
from tests.local.apiserver.definitions import definition
from tests.local.apiserver.raw_client import CRDS, PODS, RawClient, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NODES = "/api/v1/nodes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
INCOMPLETE = [[{}], [{"type": "Ready"}], [{"status": "True"}]]


def job() -> JSON:
    spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    return {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template}}


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        pytest.param(PODS, pod("a", node="n"), id="pod"),
        pytest.param(JOBS, job(), id="job"),
        pytest.param(NODES, {"metadata": {"name": "a"}}, id="node"),
    ],
)
@pytest.mark.parametrize("conditions", INCOMPLETE)
async def test_conditions_without_type_or_status_are_stored_and_shown(
    api: RawClient, path: str, obj: JSON, conditions: list[JSON]
) -> None:
    await api.create(path, obj)
    # Twice: the second write reads what the first one stored.
    for reason in ("One", "Two"):
        status = {"conditions": [each | {"reason": reason} for each in conditions]}
        assert (await api.patch(f"{path}/a/status", {"status": status})).code == 200
    assert (await api.get(path, accept=TABLE)).code == 200


@pytest.mark.parametrize("address", [{}, {"type": "InternalIP"}, {"address": "1.2.3.4"}])
async def test_address_without_type_or_value_is_shown(api: RawClient, address: JSON) -> None:
    await api.create(NODES, {"metadata": {"name": "a"}})
    status = {"status": {"addresses": [address]}}
    assert (await api.patch(f"{NODES}/a/status", status)).code == 200
    assert (await api.get(NODES, accept=TABLE)).body["rows"][0]["cells"][0] == "a"


@pytest.mark.parametrize("subset", [{"addresses": [{}]}, {"ports": [{}]}])
async def test_endpoints_without_address_or_port_are_shown(api: RawClient, subset: JSON) -> None:
    whole: JSON = {"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}
    await api.create(ENDPOINTS, {"metadata": {"name": "a"}, "subsets": [whole | subset]})
    assert (await api.get(ENDPOINTS, accept=TABLE)).code == 200


@pytest.mark.parametrize("conditions", INCOMPLETE)
async def test_crd_is_served_whatever_its_conditions(
    api: RawClient, conditions: list[JSON]
) -> None:
    await api.create(CRDS, definition())
    path = f"{CRDS}/gadgets.test.io"
    answer = await api.patch(f"{path}/status", {"status": {"conditions": conditions}})
    assert answer.code == 200
    found = (await api.get(path)).body["status"]["conditions"]
    true = {each.get("type") for each in found if each.get("status") == "True"}
    assert true >= {"NamesAccepted", "Established"}
    assert (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).code == 200
    assert (await api.get("/apis/test.io/v1/gadgets")).code == 200
