"""The lease and the controllers, with leadership changes: forced, and graceful."""

import datetime
import time
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from e2e import leadership
from e2e.kubectl import Kubectl
from e2e.leadership import LeaseTerm
from e2e.testbed import ClusterTestbed
from e2e.watching import ChangeRecord

# The deployed settings.
LEASE_S: Final = 15.0
REPLICAS: Final = 2
_READY_S: Final = 120.0
_HANDOVER_S: Final = 60.0


@attrs.frozen
class LeaseHandovers:
    """The records of lease and controllers, and the ways to end a term."""

    controller: Kubectl
    lease: ChangeRecord
    pods: ChangeRecord

    def terms(self) -> list[LeaseTerm]:
        return leadership.terms(self.lease.changes())

    def kill(self, testbed: ClusterTestbed) -> float:
        """Kill all processes of the leader; return the seconds until another leads."""
        leader = self.settled()
        began = time.time()
        testbed.kill_pod(self._ready()[leader.pod]["metadata"]["uid"])
        return self.succeeded(leader).since.timestamp() - began

    def delete(self) -> float:
        """Delete the leader's pod; return the seconds from then until another leads."""
        leader = self.settled()
        began = time.time()
        self.controller("delete", "pod", leader.pod, "--wait=false")
        return self.succeeded(leader).since.timestamp() - began

    def sigterm_times(self) -> dict[str, datetime.datetime]:
        """Return when pods were sent their SIGTERM; whole seconds, rounded down."""
        told: dict[str, datetime.datetime] = {}
        for change in self.pods.changes():
            meta = change.object["metadata"]
            if "deletionTimestamp" in meta:
                grace = datetime.timedelta(seconds=meta["deletionGracePeriodSeconds"])
                # Once they have stopped, the grace period is set to zero and the time is moved.
                told.setdefault(change.name, leadership.time(meta["deletionTimestamp"]) - grace)
        return told

    def settled(self) -> LeaseTerm:
        """Wait until all replicas are ready, one of them leading, and return its term."""

        def probe() -> LeaseTerm | None:
            ready = self._ready()
            terms = self.terms()
            calm = len(ready) == REPLICAS and terms and terms[-1].until is None
            return terms[-1] if calm and terms[-1].pod in ready else None

        return self.controller.until(probe, within_s=_READY_S, what="a leader and a standby")

    def succeeded(self, old: LeaseTerm) -> LeaseTerm:
        """Wait for the end of a term, and return the next one."""

        def probe() -> LeaseTerm | None:
            last = self.terms()[-1]
            return last if last.holder != old.holder else None

        return self.controller.until(probe, within_s=_HANDOVER_S, what=f"a leader after {old}")

    def _ready(self) -> dict[str, JSON]:
        there = {pod["metadata"]["name"]: pod for pod in self.pods.present()}
        return {name: pod for name, pod in there.items() if _is_ready(pod)}


def _is_ready(pod: JSON) -> bool:
    conditions = pod["status"].get("conditions", ())
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
