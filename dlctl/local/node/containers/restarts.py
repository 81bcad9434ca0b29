"""Restart back-off of containers, as in the kubelet.

The first restart is immediate, the following ones wait longer and longer, and a container that ran
long enough starts over.
"""

from typing import Final

import attrs

from dlctl.backoff import Backoff
from dlctl.local.node.api_types import NodePod

CRASH_LOOP: Final = Backoff(base_s=10.0, cap_s=300.0, reset_s=600.0)


@attrs.define
class CrashLoopBackoff:
    """The back-off of one container; after ``immediate_restarts``, each restart waits."""

    backoff: Backoff = CRASH_LOOP
    immediate_restarts: int | None = None
    _restarts: int = attrs.field(init=False, default=0)
    _total: int = attrs.field(init=False, default=0)

    def delay_s(self, ran_s: float) -> float:
        """Return how long to wait after a run of this length."""
        if ran_s >= self.backoff.reset_s:
            self._restarts = 0
        self._restarts += 1
        self._total += 1
        waits = self.immediate_restarts is not None and self._total > self.immediate_restarts
        return self.backoff.delay_s(max(self._restarts - 1, int(waits)))


def should_restart(pod: NodePod, exit_code: int, *, init: bool, sidecar: bool = False) -> bool:
    """Return whether a container with this exit code is restarted; sidecars always are."""
    if sidecar:
        return True
    policy = pod.spec.restart_policy or "Always"
    if init and policy == "Always":
        # An init container has to succeed once.
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
