"""The API verbs over HTTP: requests and responses."""

import asyncio
from typing import Any

import pytest

from dlctl.api.meta import CRDS, PODS, UID, ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.kube.errors import (
    NotFoundError,
)
from dlctl.kube.flowcontrol.rate_limiter import RateLimiter
from dlctl.kube.flowcontrol.write_limiter import WriteFlow, write_flow
from dlctl.kube.queries import ListOptions, PatchKind
from dlctl.metrics import Metrics
from tests.kube.scripted_server import TOKEN, Server, fails, replies

KEY = ObjectKey("ns", "a")
POD = {"kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}


async def test_get_returns_the_requested_type(server: Server, client: Client) -> None:
    server.handlers += [replies({**POD, "status": {"phase": "Running"}})]
    pod = await client.get(PODS, KEY, Pod)
    assert (pod.key, pod.phase) == (KEY, "Running")
    raw = await client.get(PODS, KEY, dict[str, Any])
    assert raw["metadata"]["uid"] == "u"
    assert server.seen[0].path == "/api/v1/namespaces/ns/pods/a"


@pytest.mark.parametrize(
    "name", ["../../../nodes/a", "a/exec", ".", "..", "a?watch=true", "a#b", "a%2Fb", "a b"]
)
async def test_any_name_is_one_segment_of_the_path(
    server: Server, client: Client, name: str
) -> None:
    server.handlers += [replies(POD)]
    await client.get(PODS, ObjectKey("ns", name), Pod)
    (seen,) = server.seen
    parent, _, last = seen.path.rpartition("/")
    assert (parent, seen.query) == ("/api/v1/namespaces/ns/pods", {})
    # What no name may have leads to no other object.
    assert last == name or "%" in last


async def test_request_has_token_and_user_agent_and_disables_compression(
    server: Server, client: Client
) -> None:
    server.handlers += [replies(POD)]
    await client.get(PODS, KEY, Pod)
    headers = server.seen[0].headers
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["user-agent"] == "dlctl/test"
    assert headers["accept-encoding"] == "identity"


async def test_list_options_become_query_parameters(server: Server, client: Client) -> None:
    meta = {"resourceVersion": "7", "continue": "next", "remainingItemCount": 3}
    server.handlers += [replies({"kind": "PodList", "metadata": meta, "items": [POD]})]
    page = await client.list(
        PODS,
        Pod,
        namespace="ns",
        label_selector="a=b,c in (d,e)",
        field_selector="status.phase!=Failed",
        limit=5,
        continue_="here/+=",
    )
    assert [pod.key for pod in page.items] == [KEY]
    assert (page.resource_version, page.continue_) == ("7", "next")
    assert server.seen[0].path == "/api/v1/namespaces/ns/pods"
    assert server.seen[0].query == {
        "labelSelector": "a=b,c in (d,e)",
        "fieldSelector": "status.phase!=Failed",
        "limit": "5",
        "continue": "here/+=",
    }


async def test_write_sends_json_with_its_patch_type(server: Server, client: Client) -> None:
    server.handlers += [replies(POD)]
    created = await client.create(PODS, "ns", {"kind": "Pod"})
    assert created.metadata.uid == "u"
    await client.patch(PODS, KEY, {"status": None}, subresource="status")
    await client.patch(PODS, KEY, [{"op": "test"}], Pod, kind=PatchKind.JSON)
    await client.replace(PODS, KEY, {"kind": "Pod"}, Pod)
    asked = [(r.method, r.path, r.headers["content-type"], r.body) for r in server.seen]
    path, media = "/api/v1/namespaces/ns/pods", "application/json"
    assert asked == [
        ("POST", path, media, {"kind": "Pod"}),
        ("PATCH", f"{path}/a/status", "application/merge-patch+json", {"status": None}),
        ("PATCH", f"{path}/a", "application/json-patch+json", [{"op": "test"}]),
        ("PUT", f"{path}/a", media, {"kind": "Pod"}),
    ]


async def test_loop_runs_between_large_bodies_that_are_due_at_the_same_time(
    server: Server, client: Client
) -> None:
    server.handlers += [replies(POD)]
    turn, rendered_in = 0, list[int]()

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    def body() -> dict[str, object]:
        rendered_in.append(turn)
        return {"kind": "Pod", "data": "x" * 100_000}

    async with asyncio.TaskGroup() as group:
        counting = group.create_task(count())
        await asyncio.gather(*(client.create(PODS, "ns", body) for _ in range(8)))
        counting.cancel()
    assert len(set(rendered_in)) == len(rendered_in) == 8


async def test_flow_of_large_bodies_falls_back_behind_later_ones(
    server: Server, client: Client
) -> None:
    server.handlers += [replies(POD)]
    turns = list[float]()
    for size in (1000, 1_000_000):
        flow = WriteFlow(arrived_at=0.0)
        token = write_flow.set(flow)
        for _ in range(6):
            await client.create(PODS, "ns", {"kind": "Pod", "data": "x" * size})
        write_flow.reset(token)
        turns.append(flow.next_turn())
    small, large = turns
    assert small == 0.0
    assert large > 1.0


async def test_delete_sends_uid_grace_period_and_propagation_policy(
    server: Server, client: Client
) -> None:
    server.handlers += [replies(POD)]
    left = await client.delete(PODS, KEY, uid=UID("u"), grace_period_s=0, propagation="Background")
    assert left
    assert left.key == KEY
    assert server.seen[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


async def test_deleting_a_missing_object_succeeds(server: Server, client: Client) -> None:
    server.handlers += [replies({"kind": "Status", "status": "Success"}), fails(404, "NotFound")]
    assert await client.delete(CRDS, ObjectKey("", "a")) is None
    assert await client.delete(PODS, KEY) is None


async def test_deleted_collection_is_limited_in_scope_and_time(
    server: Server, client: Client
) -> None:
    server.handlers += [replies({"kind": "PodList", "items": [POD]})]
    await client.delete_collection(
        PODS,
        timeout_s=7,
        namespace="ns",
        label_selector="a=b",
        resource_version="5",
        resource_version_match="Exact",
    )
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("DELETE", "/api/v1/namespaces/ns/pods")
    assert seen.query == {
        "timeout": "7.0s",
        "labelSelector": "a=b",
        "resourceVersion": "5",
        "resourceVersionMatch": "Exact",
    }


@pytest.mark.parametrize("scope", [{"namespace": "ns"}, {"label_selector": "a=b"}])
async def test_unlimited_collection_is_not_deleted(
    server: Server, client: Client, scope: ListOptions
) -> None:
    with pytest.raises(ValueError, match="expected a namespace and a label selector"):
        await client.delete_collection(PODS, timeout_s=7, **scope)
    assert not server.seen


async def test_client_used_outside_its_block_raises(server: Server) -> None:
    client = Client(ClusterConfig.with_token(server.url, TOKEN))
    with pytest.raises(RuntimeError, match="async with"):
        await client.get(PODS, KEY, Pod)


async def test_log_is_streamed_as_it_arrives(server: Server, client: Client) -> None:
    server.handlers += [replies(b"1\n2\n"), fails(404, "NotFound")]
    async with client.stream("/api/v1/namespaces/ns/pods/a/log", {"follow": "true"}) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"1\n2\n"
    assert server.seen[0].query == {"follow": "true"}
    with pytest.raises(NotFoundError):
        async with client.stream("/api/v1/namespaces/ns/pods/b/log"):
            pass


async def test_requests_are_counted(server: Server, client: Client, metrics: Metrics) -> None:
    server.handlers += [replies(POD)]
    await client.get(PODS, KEY, Pod)
    labels = {"code": "200", "method": "GET", "host": server.url.removeprefix("http://")}
    assert metrics.registry.get_sample_value("rest_client_requests_total", labels) == 1


async def test_rate_limit_covers_all_clients_that_share_it(server: Server) -> None:
    server.handlers += [replies(POD), replies(POD)]
    config, metrics = ClusterConfig.with_token(server.url, TOKEN), Metrics()
    limit = RateLimiter(qps=5, burst=1)
    async with (
        Client(config, metrics=metrics, rate_limiter=limit) as one,
        Client(config, metrics=metrics, rate_limiter=limit) as other,
    ):
        await asyncio.gather(one.get(PODS, KEY, Pod), other.get(PODS, KEY, Pod))

    labels = {"verb": "GET", "host": server.url.removeprefix("http://")}
    name = "rest_client_rate_limiter_duration_seconds"
    assert metrics.registry.get_sample_value(f"{name}_count", labels) == 2
    assert metrics.registry.get_sample_value(f"{name}_sum", labels) == pytest.approx(0.2, abs=0.15)
