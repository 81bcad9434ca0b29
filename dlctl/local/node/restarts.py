"""How long a container that keeps ending waits before its next start.

As the kubelet does it: the first restart is at once, the next after ``base_s``, then doubling to
``cap_s``; a container that has run for ``reset_s`` starts over.
"""

import attrs

from dlctl.local.node.api_types import NodePod


@attrs.frozen
class RestartDelays:
    """The three times of the crash loop back-off; tests make them short."""

    base_s: float = 10.0
    cap_s: float = 300.0
    reset_s: float = 600.0


@attrs.define
class CrashLoopBackoff:
    """The back-off of one container."""

    delays: RestartDelays
    _next_s: float = 0.0

    def delay_s(self, ran_s: float) -> float:
        """Return how long to wait after a run of this length."""
        if ran_s >= self.delays.reset_s:
            self._next_s = 0.0
        now_s = self._next_s
        self._next_s = min(now_s * 2 or self.delays.base_s, self.delays.cap_s)
        return now_s


def should_restart(pod: NodePod, exit_code: int, *, init: bool) -> bool:
    """Whether the pod's policy starts a container again that ended so."""
    policy = pod.spec.restart_policy or "Always"
    if init and policy == "Always":
        # An init container is to succeed once.
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
