"""A scheduler for one node: binds every pod that may be scheduled.

Resources, selectors and affinity are ignored, since there is no other node. A pod with scheduling
gates waits; one with another scheduler's name is marked unschedulable.
"""

import asyncio
from typing import Final, NoReturn

import attrs

from dlctl.api.meta import PODS, ObjectKey, Resource
from dlctl.clock import Clock, timestamp
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, UnreachableError
from dlctl.local.node.api_types import NodePod

DEFAULT_SCHEDULER: Final = "default-scheduler"
_RETRY_S: Final = 1.0


@attrs.define(eq=False)
class Scheduler:
    """Binds pods in order of arrival."""

    client: Client
    pods: Informer[NodePod]
    node_name: str
    clock: Clock
    _waiting: asyncio.Queue[ObjectKey] = attrs.field(init=False, factory=asyncio.Queue)

    def __attrs_post_init__(self) -> None:
        self.pods.add_handler(self._on_change)

    def _on_change(self, change: Change[NodePod]) -> None:
        pod = change.new
        if pod is not None and not pod.spec.node_name and not pod.metadata.is_terminating:
            self._waiting.put_nowait(pod.key)

    async def run(self) -> NoReturn:
        while True:
            key = await self._waiting.get()
            pod = self.pods.store.get(key)
            if pod is None or pod.spec.node_name or pod.metadata.is_terminating:
                continue
            try:
                await self._schedule(pod)
            except UnreachableError:
                await asyncio.sleep(_RETRY_S)
                self._waiting.put_nowait(key)
            except ApiError:
                # Bound or deleted by another client meanwhile: a watch event follows.
                continue

    async def _schedule(self, pod: NodePod) -> None:
        if pod.spec.scheduling_gates:
            # The API server has set the condition; removing a gate changes the pod.
            return
        if pod.spec.scheduler_name not in (None, "", DEFAULT_SCHEDULER):
            name = pod.spec.scheduler_name
            await self._mark_unschedulable(
                pod, "Unschedulable", f'this cluster has no scheduler "{name}"'
            )
        else:
            await self._bind(pod)

    async def _bind(self, pod: NodePod) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.metadata.name, "uid": pod.metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node_name},
        }
        # Creating a subresource takes a path like any other.
        binding = Resource("", "v1", f"pods/{pod.metadata.name}/binding", "Binding")
        await self.client.create(binding, pod.metadata.namespace or "", body)

    async def _mark_unschedulable(self, pod: NodePod, reason: str, message: str) -> None:
        conditions = (pod.status or {}).get("conditions") or []
        if any(c.get("type") == "PodScheduled" and c.get("reason") == reason for c in conditions):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        others = [c for c in conditions if c.get("type") != "PodScheduled"]
        body = {"status": {"phase": "Pending", "conditions": [*others, condition]}}
        await self.client.patch(PODS, pod.key, body, subresource="status")
