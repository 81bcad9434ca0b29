from collections.abc import AsyncIterator
from typing import Any

import pytest

from dlctl.local.apiserver.endpoints.log_requests import LogRequest
from tests.local.apiserver.raw_client import CRDS, PODS, WIDGETS, RawClient, pod, widget, widget_crd

BINDING = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "a"},
    "target": {"kind": "Node", "name": "n"},
}


async def test_binding_sets_the_node_of_a_pod(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    answer = await api.post(f"{PODS}/a/binding", BINDING)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    bound = (await api.get(f"{PODS}/a")).body
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["generation"] == 1
    conditions = {each["type"]: each["status"] for each in bound["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"


async def test_bound_pod_cannot_be_bound_again(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="m"))
    answer = await api.post(f"{PODS}/a/binding", BINDING)
    assert answer.code == 409
    assert answer.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "m"'
    )


async def test_eviction_deletes_with_grace(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    answer = await api.post(f"{PODS}/a/eviction", eviction)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    evicted = (await api.get(f"{PODS}/a")).body
    assert evicted["metadata"]["deletionTimestamp"]
    (disruption,) = [c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (disruption["status"], disruption["reason"]) == ("True", "EvictionByEvictionAPI")


async def test_log_request_is_passed_to_the_source_with_all_options(api: RawClient) -> None:
    asked: list[LogRequest] = []

    async def source(request: LogRequest) -> AsyncIterator[bytes]:
        asked.append(request)
        yield b"one\n"
        yield b"two\n"

    api.server.subresources.log_source = source
    await api.create(PODS, pod("a"))
    answer = await api.get(f"{PODS}/a/log", tailLines=2, follow="true", previous="true")
    assert (answer.code, answer.body) == (200, "one\ntwo\n")
    assert asked == [LogRequest("default", "a", "main", previous=True, follow=True, tail_lines=2)]


@pytest.mark.parametrize(
    ("containers", "params", "message"),
    [
        pytest.param(
            ["x", "y"],
            {},
            "a container name must be specified for pod a, choose one of: [x y]",
            id="several",
        ),
        pytest.param(
            ["x"], {"container": "z"}, "container z is not valid for pod a", id="no such one"
        ),
    ],
)
async def test_log_needs_a_container(
    api: RawClient, containers: list[str], params: dict[str, Any], message: str
) -> None:
    spec = {"containers": [{"name": name, "image": "i"} for name in containers]}
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
    answer = await api.get(f"{PODS}/a/log", **params)
    assert (answer.code, answer.body["message"]) == (400, message)


async def test_log_of_an_absent_pod_is_not_found(api: RawClient) -> None:
    assert (await api.get(f"{PODS}/a/log")).code == 404


async def test_scale_reads_and_writes_the_replicas(api: RawClient) -> None:
    crd = widget_crd()
    crd["spec"]["versions"][0]["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    }
    await api.create(CRDS, crd)
    await api.create(WIDGETS, widget("a", spec={"replicas": 2}))
    path = f"{WIDGETS}/a/scale"
    scale = await api.get(path)
    assert (scale.body["kind"], scale.body["spec"]) == ("Scale", {"replicas": 2})

    patched = await api.patch(path, {"spec": {"replicas": 3}})
    assert patched.body["spec"] == {"replicas": 3}
    assert (await api.put(path, scale.body)).code == 409
    status = {"replicas": 2, "labelSelector": "job=a"}
    await api.patch(f"{WIDGETS}/a/status", {"status": status})
    seen = {"replicas": 2, "selector": "job=a"}
    assert (await api.get(path)).body["status"] == seen
    assert (await api.get(f"{WIDGETS}/a")).body["spec"]["replicas"] == 3


async def test_each_service_gets_an_address_unless_headless(api: RawClient) -> None:
    path = "/api/v1/namespaces/default/services"
    ports = [{"port": 80}]
    for name, spec in (("a", {}), ("b", {}), ("c", {"clusterIP": "None"})):
        await api.create(path, {"metadata": {"name": name}, "spec": {"ports": ports} | spec})
    listed = (await api.get(path)).body["items"]
    first, second, headless = (each["spec"]["clusterIP"] for each in listed)
    assert first.startswith("10.96.")
    assert first != second
    assert headless == "None"

    body = {"metadata": {"name": "d"}, "spec": {"ports": ports, "clusterIP": first}}
    taken = await api.post(path, body)
    assert taken.code == 422
    assert "provided IP is already allocated" in taken.body["message"]
    await api.delete(f"{path}/a")
    assert (await api.post(path, body)).code == 201
