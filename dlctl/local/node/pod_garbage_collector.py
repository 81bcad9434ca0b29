"""Deletes pods bound to nodes that do not exist, as the pod garbage collector of Kubernetes does.

No kubelet would: a deleted pod would stay Terminating, and another one Pending.
"""

import asyncio
from collections import defaultdict

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.clock import Clock, timestamp
from dlctl.informers.informer import Informer
from dlctl.local.conditions import with_condition
from dlctl.local.node.api_types import NodePod
from dlctl.local.node.pod_api import PodApi
from dlctl.local.node.scheduling_filters import SchedulableNode


@attrs.frozen
class PodGcTiming:
    """Seconds between two checks, and until a missing node counts as gone.

    The defaults are those of kube-controller-manager.
    """

    period_s: float = 20.0
    quarantine_s: float = 40.0


@attrs.define(eq=False)
class PodGarbageCollector:
    """Fails and deletes the pods of missing nodes; the caller runs the informers."""

    api: PodApi
    pods: Informer[NodePod]
    nodes: Informer[SchedulableNode]
    clock: Clock
    timing: PodGcTiming = PodGcTiming()
    # When nodes were first found missing, in monotonic seconds, by name.
    _missing_since: dict[str, float] = attrs.field(init=False, factory=dict)

    async def run(self) -> None:
        """Collect pods until cancelled."""
        await self.pods.wait_synced()
        await self.nodes.wait_synced()
        while True:
            for pod in self._find():
                await self._delete(pod)
            await asyncio.sleep(self.timing.period_s)

    def _find(self) -> list[NodePod]:
        """Return the pods whose nodes have been missing for long enough."""
        pods: defaultdict[str, list[NodePod]] = defaultdict(list)
        for pod in self.pods.store:
            name = pod.spec.node_name
            if name and ObjectKey("", name) not in self.nodes.store:
                pods[name].append(pod)
        now_s = self.clock.monotonic()
        # Only of nodes that are still missing: one that comes back starts again.
        self._missing_since = {name: self._missing_since.get(name, now_s) for name in pods}
        quarantine_s = self.timing.quarantine_s
        gone = [n for n, since_s in self._missing_since.items() if now_s - since_s >= quarantine_s]
        return [pod for name in gone for pod in pods[name]]

    async def _delete(self, pod: NodePod) -> None:
        if not pod.finished:
            # Before the deletion: a finalizer may keep the pod, which would count as running.
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": timestamp(self.clock.now()),
            }
            conditions = with_condition(pod.status or {}, condition)
            status = {"phase": "Failed", "conditions": conditions}
            await self.api.write_status(pod, status)
        await self.api.remove(pod)
