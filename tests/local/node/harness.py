"""A running cluster for tests: creates pods and returns their statuses."""

import asyncio
from collections.abc import Callable
from typing import Any

import attrs

from dlctl.api.meta import EVENTS, PODS, ObjectKey, Resource
from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.api_types import NodePod
from tests.local.node.builders import pod_body

Wire = dict[str, Any]


@attrs.define(eq=False)
class NodeHarness:
    """A cluster whose waits are woken by the node's informer, not by polling."""

    cluster: EmbeddedCluster
    client: Client

    @property
    def isolated(self) -> bool:
        return self.cluster.network.isolated

    async def start(self, name: str, **spec: Any) -> None:
        await self.client.create(PODS, "default", pod_body(name, **spec))

    async def create(self, resource: Resource, name: str, **fields: Any) -> None:
        await self.client.create(resource, "default", {"metadata": {"name": name}, **fields})

    async def run(self, name: str, **spec: Any) -> Wire:
        """Return the status of the terminated pod."""
        await self.start(name, **spec)
        return await self.finished(name)

    async def finished(self, name: str) -> Wire:
        return await self.until(name, lambda status: status["phase"] in ("Succeeded", "Failed"))

    async def until(self, name: str, holds: Callable[[Wire], object]) -> Wire:
        pod = await self._until(name, lambda pod: pod is not None and bool(holds(pod.status or {})))
        assert pod is not None
        return pod.status or {}

    async def gone(self, name: str) -> None:
        await self._until(name, lambda pod: pod is None)

    async def _until(self, name: str, holds: Callable[[NodePod | None], bool]) -> NodePod | None:
        changed = asyncio.Event()
        pods, key = self.cluster.node.pods, ObjectKey("default", name)
        pods.add_handler(lambda _: changed.set())
        async with asyncio.timeout(15):
            while not holds(pods.store.get(key)):
                changed.clear()
                await changed.wait()
        return pods.store.get(key)

    async def log(self, name: str, **params: str) -> str:
        path = PODS.path("default", name, "log")
        return (await self.client.get_raw(path, params)).decode()

    def uid(self, name: str) -> str:
        pod = self.cluster.node.pods.store.get(ObjectKey("default", name))
        assert pod is not None
        return pod.metadata.uid

    async def warning(self, text: str) -> None:
        """Wait for an Event object with this message."""
        async with (
            asyncio.timeout(15),
            self.client.watch(EVENTS, namespace="default", resource_version="0") as lines,
        ):
            async for line in lines:
                if text.encode() in line:
                    return

    async def event(self, message: str, *, pod: str) -> None:
        """Wait for an event about the pod with this text in its message."""
        selector = f"involvedObject.name={pod}"
        async with (
            asyncio.timeout(15),
            self.client.watch(
                EVENTS, namespace="default", resource_version="0", field_selector=selector
            ) as lines,
        ):
            async for line in lines:
                if message.encode() in line:
                    return

    async def first_line(self, name: str, **params: str) -> str:
        """Follow the log and return its first line."""
        path = PODS.path("default", name, "log")
        seen, params = b"", {"follow": "true", **params}
        async with asyncio.timeout(15), self.client.stream(path, params) as chunks:
            async for chunk in chunks:
                seen += chunk
                if b"\n" in seen:
                    break
        return seen.decode().splitlines()[0]

    async def delete(self, name: str, *, grace_period_s: int | None = None) -> None:
        await self.client.delete(PODS, ObjectKey("default", name), grace_period_s=grace_period_s)


def container(status: Wire, index: int = 0) -> Wire:
    return dict(status["containerStatuses"][index])


def exit_code(status: Wire) -> int:
    return int(container(status)["state"]["terminated"]["exitCode"])
