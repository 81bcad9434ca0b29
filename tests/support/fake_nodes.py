"""Several nodes that fall silent, drain, shut down, go and come back, and what a cluster then does.

The parts of kube-controller-manager are played here: the node lifecycle and taint controllers, and
the garbage collection of pods.
"""

import random
from contextlib import suppress
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.api.objects.nodes import HOSTNAME_LABEL, NODES, OUT_OF_SERVICE_TAINT
from dlctl.clock import timestamp
from dlctl.kube.errors import AlreadyExistsError, ConflictError, InvalidError, NotFoundError
from tests.support.harness import ClusterHarness

UNREACHABLE: Final = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
_CORDONED: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_OUT_OF_SERVICE: Final = {"key": OUT_OF_SERVICE_TAINT, "value": "off", "effect": "NoExecute"}
# Errors for a pod or node that is gone, or whose name belongs to another one.
GONE: Final = (NotFoundError, ConflictError, InvalidError)
_GRACE_S: Final = 30


@attrs.define(eq=False)
class FakeNodes:
    """The nodes of a cluster by name; ``harmed`` are the UIDs of pods that they have ended."""

    cluster: ClusterHarness
    dice: random.Random
    # The silent ones, and those that take no pods for another reason.
    silent: set[str] = attrs.field(factory=set)
    closed: set[str] = attrs.field(factory=set)
    names: list[str] = attrs.field(factory=list)
    harmed: set[str] = attrs.field(factory=set)

    async def add(self, *names: str) -> None:
        for name in names:
            body = {"metadata": {"name": name, "labels": {HOSTNAME_LABEL: name}}}
            with suppress(AlreadyExistsError):
                await self.cluster.user.create(NODES, "", body)
            self.names.append(name)
            await self._report(name, "True")
        self.cluster.node.choose_node = self._choose

    @property
    def open(self) -> list[str]:
        """The nodes that take pods."""
        return [n for n in self.names if n not in self.silent and n not in self.closed]

    def pods(self, node: str) -> list[JSON]:
        return [p for p in self.cluster.objects(PODS) if p["spec"].get("nodeName") == node]

    async def fall_silent(self, name: str, *, phase: str = "") -> None:
        """Disconnect a node; pods on it go on, and cannot be stopped."""
        self.silent.add(name)
        for pod in self.pods(name):
            self.cluster.node.disconnect(pod["metadata"]["uid"])
        await self._report(name, "Unknown")
        await self._set_taints(name, UNREACHABLE)
        for pod in self.pods(name):
            status: JSON = {"conditions": [{"type": "Ready", "status": "False"}]}
            if phase and not _is_over(pod):
                status["phase"] = phase
            await self._patch_status(pod, status)

    async def evict(self, name: str, reason: str = "DeletionByTaintManager") -> None:
        """Delete the pods of a node, which its kubelet then stops unless it is silent."""
        for pod in self.pods(name):
            await self.disrupt(pod, reason)

    async def disrupt(self, pod: JSON, reason: str) -> None:
        if _is_over(pod) or "deletionTimestamp" in pod["metadata"]:
            return
        self.harmed.add(pod["metadata"]["uid"])
        await self._patch_status(pod, {"conditions": [_target(reason)]})
        await self._delete(pod, _GRACE_S)

    async def shut_down(self, name: str) -> None:
        """End the pods of a node as its kubelet does at a graceful shutdown."""
        self.closed.add(name)
        await self._report(name, "False")
        for pod in self.pods(name):
            if _is_over(pod) or "deletionTimestamp" in pod["metadata"]:
                continue
            self.harmed.add(pod["metadata"]["uid"])
            said = {"reason": "Terminated", "message": "Pod was terminated by node shutdown."}
            conditions = [_target("TerminationByKubelet")]
            await self._patch_status(pod, {"phase": "Failed", **said, "conditions": conditions})

    async def drain(self, name: str, taint: str) -> None:
        """Announce that a node goes; its pods stay for now."""
        self.closed.add(name)
        await self._set_taints(name, _CORDONED, {"key": taint, "effect": "NoSchedule"})

    async def put_out_of_service(self, name: str) -> None:
        """Say that a silent node is off; its terminating pods are deleted by force."""
        await self._set_taints(name, UNREACHABLE, _OUT_OF_SERVICE)
        for pod in self.pods(name):
            await self._collect(pod)

    async def remove(self, name: str) -> None:
        """Delete a node; its pods are collected."""
        self.names.remove(name)
        self.silent.discard(name)
        self.closed.discard(name)
        await self.cluster.user.delete(NODES, ObjectKey("", name))
        for pod in self.pods(name):
            await self._collect(pod)

    async def come_back(self, name: str) -> None:
        """Let a node be as before; it stops the pods whose deletion it has missed."""
        self.silent.discard(name)
        self.closed.discard(name)
        await self._set_taints(name)
        await self._report(name, "True")
        for pod in self.pods(name):
            if "deletionTimestamp" in pod["metadata"]:
                await self._delete(pod, 0)
            elif not _is_over(pod):
                self.cluster.node.reconnect(pod["metadata"]["uid"])
                ready = [{"type": "Ready", "status": "True"}]
                await self._patch_status(pod, {"phase": "Running", "conditions": ready})

    def _choose(self, pod: JSON) -> str | None:
        required = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        terms = required.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        excluded = {
            host
            for term in terms.get("nodeSelectorTerms") or ()
            for expression in term["matchExpressions"]
            for host in expression["values"]
        }
        fitting = [name for name in self.open if name not in excluded]
        return self.dice.choice(fitting) if fitting else None

    async def _collect(self, pod: JSON) -> None:
        if not _is_over(pod):
            self.harmed.add(pod["metadata"]["uid"])
            conditions = [_target("DeletionByPodGC")]
            await self._patch_status(pod, {"phase": "Failed", "conditions": conditions})
        await self._delete(pod, 0)

    async def _patch_status(self, pod: JSON, status: JSON) -> None:
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        with suppress(*GONE):
            key = self.cluster.key(metadata["name"])
            await self.cluster.user.patch(PODS, key, body, subresource="status")

    async def _delete(self, pod: JSON, grace_s: int) -> None:
        metadata = pod["metadata"]
        with suppress(*GONE):
            await self.cluster.user.delete(
                PODS,
                self.cluster.key(metadata["name"]),
                uid=UID(metadata["uid"]),
                grace_period_s=grace_s,
            )

    async def _report(self, name: str, ready: str) -> None:
        now = timestamp(self.cluster.clock.now())
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": now}
        body = {"status": {"conditions": [condition]}}
        await self.cluster.user.patch(NODES, ObjectKey("", name), body, subresource="status")

    async def _set_taints(self, name: str, *taints: JSON) -> None:
        body = {"spec": {"taints": list(taints)}}
        await self.cluster.user.patch(NODES, ObjectKey("", name), body)


def _is_over(pod: JSON) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _target(reason: str) -> JSON:
    return {"type": "DisruptionTarget", "status": "True", "reason": reason}
