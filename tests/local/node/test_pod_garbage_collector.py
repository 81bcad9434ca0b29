"""Pods bound to nodes that do not exist."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import ApiServer, serve
from dlctl.local.node.api_types import NodePod
from dlctl.local.node.pod_api import PodApi
from dlctl.local.node.pod_garbage_collector import PodGarbageCollector
from dlctl.local.node.scheduling_filters import SchedulableNode
from tests.local.node.builders import pod_body
from tests.support.timing import LoopClock

pytestmark = [pytest.mark.looptime(noop_cycles=8)]


@attrs.frozen
class Cluster:
    """An API server whose pods nobody runs."""

    server: ApiServer
    client: Client

    async def bind(self, name: str, node: str | None, **metadata: Any) -> None:
        body = pod_body(name, nodeName=node)
        body["metadata"].update(metadata)
        await self.client.create(PODS, "default", body)

    async def delete(self, name: str) -> None:
        await self.client.delete(PODS, ObjectKey("default", name))

    async def create_node(self, name: str) -> None:
        await self.client.create(NODES, "", {"metadata": {"name": name}})

    @property
    def pods(self) -> dict[str, JSON]:
        """Return the pods by name."""
        stored = [each.decoded(PODS) for each in self.server.storage.objects(PODS)]
        return {pod["metadata"]["name"]: pod for pod in stored}


@asynccontextmanager
async def start_cluster() -> AsyncIterator[Cluster]:
    clock = LoopClock()
    async with serve(tls=False, clock=clock) as server, Client(server.config()) as client:
        pods = Informer(client, PODS, NodePod, clock=clock)
        nodes = Informer(client, NODES, SchedulableNode, clock=clock)
        collector = PodGarbageCollector(PodApi(client), pods, nodes, clock)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part.run()) for part in (pods, nodes, collector)]
            yield Cluster(server, client)
            for task in tasks:
                task.cancel()


async def test_pods_of_a_missing_node_are_deleted_after_a_while() -> None:
    async with start_cluster() as cluster:
        await cluster.create_node("here")
        await cluster.bind("deleted", "nowhere")
        await cluster.delete("deleted")
        await cluster.bind("pending", "nowhere")
        await cluster.bind("on-node", "here")
        await cluster.delete("on-node")
        await cluster.bind("unbound", None)
        await asyncio.sleep(39)
        assert sorted(cluster.pods) == ["deleted", "on-node", "pending", "unbound"]
        await asyncio.sleep(22)
        assert sorted(cluster.pods) == ["on-node", "unbound"]
        await asyncio.sleep(600)
        assert sorted(cluster.pods) == ["on-node", "unbound"]


async def test_pod_of_a_missing_node_that_a_finalizer_keeps_has_failed() -> None:
    async with start_cluster() as cluster:
        await cluster.bind("kept", "nowhere", finalizers=["example.com/keep"])
        ready = {"type": "Ready", "status": "True"}
        running = {"status": {"phase": "Running", "conditions": [ready]}}
        await cluster.client.patch(
            PODS, ObjectKey("default", "kept"), running, subresource="status"
        )
        await asyncio.sleep(90)
        pod = cluster.pods["kept"]
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
        assert pod["status"]["phase"] == "Failed"
        kept, condition = pod["status"]["conditions"]
        assert kept == ready
        assert condition["type"] == "DisruptionTarget"
        assert condition["reason"] == "DeletionByPodGC"


async def test_pod_stays_if_its_node_is_missing_for_a_short_time() -> None:
    async with start_cluster() as cluster:
        await cluster.create_node("flaky")
        await cluster.bind("stays", "flaky")
        for _ in range(3):
            await cluster.client.delete(NODES, ObjectKey("", "flaky"))
            await asyncio.sleep(30)
            await cluster.create_node("flaky")
            await asyncio.sleep(30)
        assert sorted(cluster.pods) == ["stays"]
