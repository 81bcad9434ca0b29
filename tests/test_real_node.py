"""The nodes that the tests on a real cluster play themselves."""

import asyncio
from typing import Final

import attrs

from dlctl.api.meta import PODS, ObjectKey, Resource
from dlctl.clock import SystemClock
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import serve
from tests.builders import template
from tests.support.real_node import RealNode

NODE: Final = "played"
POD: Final = ObjectKey("default", "bound-late")
BINDINGS: Final = Resource("", "v1", f"pods/{POD.name}/binding", "Binding")


@attrs.define(eq=False, kw_only=True)
class SlowNode(RealNode):
    """A node that has not seen a pod's binding when the pod is deleted."""

    deleted: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def _read_again(self) -> None:
        await self.deleted.wait()


async def test_a_pod_that_is_deleted_right_after_its_binding_is_removed() -> None:
    async with (
        asyncio.timeout(20),
        serve(tls=False) as server,
        Client(server.config(), user_agent="kubelet") as client,
        asyncio.TaskGroup() as tasks,
    ):
        node = SlowNode(server, client, SystemClock(), name=NODE)
        running = tasks.create_task(node.run())
        await client.create(PODS, "default", {"metadata": {"name": POD.name}, **template()})
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        await client.create(BINDINGS, "default", {"metadata": {"name": POD.name}, "target": target})
        await client.delete(PODS, POD)
        assert server.storage.get(PODS, POD), "only the node removes a pod that it has"
        node.deleted.set()
        while server.storage.get(PODS, POD):  # noqa: ASYNC110 - a store has no events
            await asyncio.sleep(0.02)
        running.cancel()
