"""A scheduler for one node: binds every pod that the node can take.

A pod with scheduling gates waits. One that does not fit, or that names another scheduler, is marked
unschedulable; it is tried again when a pod has ended or the node has changed.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import Final

import attrs

from dlctl.api.meta import PODS, UID, ObjectKey, Resource
from dlctl.api.objects.nodes import NODES
from dlctl.clock import Clock, timestamp
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, UnreachableError
from dlctl.local.conditions import with_condition
from dlctl.local.node.api_types import NodePod
from dlctl.local.node.pod_api import is_transient
from dlctl.local.node.pod_events import PodEvents
from dlctl.local.node.resource_requests import pod_requests
from dlctl.local.node.scheduling_filters import DEFAULT_SCHEDULER, SchedulableNode, rejection

_RETRY_S: Final = 1.0


@attrs.define(eq=False)
class Scheduler:
    """Binds pods in order of arrival; those that wait for room do not hold up others."""

    client: Client
    pods: Informer[NodePod]
    node_name: str
    clock: Clock
    # Resources that count even while the node does not list them.
    devices: Collection[str] = ()
    nodes: Informer[SchedulableNode] = attrs.field(init=False)
    _events: PodEvents = attrs.field(init=False)
    _waiting: asyncio.Queue[ObjectKey] = attrs.field(init=False, factory=asyncio.Queue)
    # In order of arrival.
    _unschedulable: dict[ObjectKey, None] = attrs.field(init=False, factory=dict)
    # Bound, but the informer has not seen it yet.
    _bound: dict[UID, NodePod] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.nodes = Informer(self.client, NODES, SchedulableNode, clock=self.clock)
        self._events = PodEvents(self.client, {"component": DEFAULT_SCHEDULER}, self.clock)
        self.pods.add_handler(self._on_change)
        self.nodes.add_handler(lambda _: self._retry())

    def _on_change(self, change: Change[NodePod]) -> None:
        old, pod = change.old, change.new
        if old is not None and (pod is None or pod.metadata.uid != old.metadata.uid):
            self._bound.pop(old.metadata.uid, None)
            self._retry()
        if pod is None:
            return
        if pod.spec.node_name:
            self._bound.pop(pod.metadata.uid, None)
        elif not pod.metadata.is_terminating:
            self._waiting.put_nowait(pod.key)
        if pod.finished:
            self._retry()

    def _retry(self) -> None:
        for key in self._unschedulable:
            self._waiting.put_nowait(key)
        self._unschedulable.clear()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.nodes.run(), name="scheduler: nodes")
            group.create_task(self._events.run(), name="scheduler: events")
            await self.nodes.wait_synced()
            while True:
                await self._schedule_next()

    async def _schedule_next(self) -> None:
        key = await self._waiting.get()
        pod = self.pods.store.get(key)
        if pod is None or pod.spec.node_name or pod.metadata.is_terminating:
            return
        if pod.metadata.uid in self._bound:
            return
        try:
            await self._schedule(pod)
        except (UnreachableError, ApiError) as failure:
            # Otherwise it was bound or deleted by another client: a watch event follows.
            if is_transient(failure):
                loop = asyncio.get_running_loop()
                loop.call_later(_RETRY_S, self._waiting.put_nowait, key)

    async def _schedule(self, pod: NodePod) -> None:
        if pod.spec.scheduling_gates:
            # The API server has set the condition; removing a gate changes the pod.
            return
        if pod.spec.scheduler_name not in (None, "", DEFAULT_SCHEDULER):
            name = pod.spec.scheduler_name
            await self._mark_unschedulable(pod, f'this cluster has no scheduler "{name}"')
        elif message := self._rejection(pod):
            self._unschedulable[pod.key] = None
            self._events.warn(pod, "FailedScheduling", message)
            await self._mark_unschedulable(pod, message)
        else:
            # Before the watch event, which may be faster than the response.
            self._bound[pod.metadata.uid] = pod
            try:
                await self._bind(pod)
            except (UnreachableError, ApiError):
                self._bound.pop(pod.metadata.uid, None)
                raise
            message = f"Successfully assigned {pod.key} to {self.node_name}"
            self._events.record(pod, "Scheduled", message)

    def _rejection(self, pod: NodePod) -> str:
        node = self.nodes.store.get(ObjectKey("", self.node_name))
        if node is None:
            return "no nodes available to schedule pods"
        used: Counter[str] = Counter()
        if pod_requests(pod):
            running = [
                each for each in self.pods.store if each.spec.node_name and not each.finished
            ]
            for other in (*running, *self._bound.values()):
                used.update(pod_requests(other))
        return rejection(pod, node, used, self.devices)

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

    async def _mark_unschedulable(self, pod: NodePod, message: str) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        conditions = (pod.status or {}).get("conditions") or []
        if any(condition.items() <= each.items() for each in conditions):
            return
        condition["lastTransitionTime"] = timestamp(self.clock.now())
        changed = with_condition(pod.status or {}, condition)
        body = {"status": {"phase": "Pending", "conditions": changed}}
        await self.client.patch(PODS, pod.key, body, subresource="status")
