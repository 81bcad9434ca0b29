"""A node of a real cluster that has no kubelet: the fake kubelet stands behind it.

Jobs with a script are steered here. All other pods go to kwok's nodes: it makes them run, this
says how they end. But it deletes by name, so that pods with a successor are not for it.
"""

import asyncio
import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import LEASES, PODS, ObjectKey, Resource
from tests.support.fake_kubelet import FakeKubelet
from tests.support.fake_pods import FakePod

_NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
_HOSTNAME: Final = "kubernetes.io/hostname"
# For our pods only: others would never run here.
_RESERVED: Final = {"key": "dlctl-test", "value": "reserved", "effect": "NoSchedule"}
_LEASES: Final = "kube-node-lease"
_RENEWAL_S: Final = 2.0
_POLL_S: Final = 0.02


@attrs.define(eq=False, kw_only=True)
class RealNode(FakeKubelet):
    """Plays the pods that the scheduler binds to it, and ends those on kwok's nodes."""

    name: str
    # On a busy machine, jobs would not wait long enough for the second report.
    eviction_lag_s: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Return whether it is about to report on a pod."""
        return any(pod.is_pausing for pod in self._pods.values())

    async def register(self) -> None:
        size = {"cpu": "1000", "memory": "1Ti", "ephemeral-storage": "9Ti", "pods": "10000"}
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": self._now()}
        node = {
            "metadata": {"name": self.name, "labels": {_HOSTNAME: self.name}},
            "spec": {"taints": [_RESERVED]},
            "status": {"capacity": size, "allocatable": size, "conditions": [ready]},
        }
        await self.client.create(_NODES, "", node)
        lease = {"metadata": {"name": self.name}, "spec": self._renewal()}
        await self.client.create(LEASES, _LEASES, lease)

    async def renew_lease(self) -> None:
        """Renew the node's lease until cancelled."""
        while True:
            await asyncio.sleep(_RENEWAL_S)
            body = {"spec": self._renewal()}
            await self.client.patch(LEASES, ObjectKey(_LEASES, self.name), body)

    async def remove(self) -> None:
        await self.client.delete(_NODES, ObjectKey("", self.name))
        await self.client.delete(LEASES, ObjectKey(_LEASES, self.name))

    def with_node_selector(self, job: Mapping[str, Any]) -> JSON:
        """Return the job with its pods bound to this node."""
        steered = copy.deepcopy(dict(job))
        for entry in _entries(steered["spec"]):
            entry["template"]["spec"] |= self.placement()
        return steered

    def placement(self) -> JSON:
        return {"nodeSelector": {_HOSTNAME: self.name}, "tolerations": [_RESERVED]}

    async def _start(self, fake_pod: FakePod) -> None:
        await self._until(fake_pod, lambda pod: pod["spec"].get("nodeName"))
        if self._is_ours(fake_pod):
            await super()._start(fake_pod)
        else:
            await self._until(fake_pod, lambda pod: pod["status"]["phase"] == "Running")
            fake_pod.started = self._now()

    async def _stop(self, fake_pod: FakePod) -> None:
        if self._is_ours(fake_pod):
            await super()._stop(fake_pod)
        else:
            await fake_pod.gone.wait()

    def _placed(self, fake_pod: FakePod) -> JSON:
        return super()._placed(fake_pod) if self._is_ours(fake_pod) else {}

    async def _until(self, fake_pod: FakePod, holds: Callable[[JSON], object]) -> None:
        while True:
            # Also of a pod that is being deleted: it may have been bound a moment before.
            stored = self.server.storage.get(PODS, fake_pod.key)
            if stored is not None and holds(pod := stored.decoded(PODS)):
                fake_pod.pod = pod
                return
            if fake_pod.leaving.is_set():
                return
            await self._read_again()

    async def _read_again(self) -> None:
        await asyncio.sleep(_POLL_S)

    def _is_ours(self, fake_pod: FakePod) -> bool:
        return bool(fake_pod.pod["spec"].get("nodeName") == self.name)

    def _renewal(self) -> JSON:
        now: datetime = self.clock.now()
        return {
            "holderIdentity": self.name,
            "leaseDurationSeconds": 40,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }


def _entries(spec: Any) -> Iterable[JSON]:
    """Return the replica specs of a job in any form."""
    if isinstance(spec, list):
        return spec
    if "template" in spec:
        return [spec]
    whole = next(value for field, value in spec.items() if field.lower().endswith("replicaspecs"))
    return whole.values() if isinstance(whole, dict) else whole
