"""Whether this process leads, readable from all of its threads. Nothing here blocks."""

import math

from dlctl.clock import Clock
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.watchdog import Watchdog


class LeaseValidity:
    """The period in which a process may write: starts with the lease, ends once, by itself.

    Only the elector's thread writes it; any thread reads it. There is no lock, since its holder
    might hang: each field is one number or flag, and the order of the writes is safe.
    """

    def __init__(self, timing: LeaseTiming, clock: Clock, watchdog: Watchdog) -> None:
        self._timing = timing
        self._clock = clock
        self._watchdog = watchdog
        self._renewed_at = -math.inf
        self._ended = False

    def may_write(self) -> bool:
        """Return whether the lease is certainly ours; valid for this moment only."""
        return not self._ended and self.remaining_s > 0

    @property
    def remaining_s(self) -> float:
        """Return the seconds until it ends without another renewal."""
        return self._renewed_at + self._timing.write_window_s - self._clock.monotonic()

    def extend(self, renewed_at: float) -> None:
        """Extend it, from the time of the renewal and not from now."""
        self._watchdog.arm(renewed_at + self._timing.renew_s - self._clock.monotonic())
        self._renewed_at = renewed_at

    def revoke(self) -> None:
        """End it for good; the process exits soon, and no later than it would have."""
        margin_s = self._timing.margin_s
        self._end(exit_within_s=min(margin_s, self.remaining_s + margin_s))

    def resign(self) -> None:
        """End it for good, with time to release the lease."""
        self._end(exit_within_s=self._timing.renew_s + self._timing.margin_s)

    def released(self) -> None:
        """Record that the lease is released, or left to expire."""
        self._watchdog.disarm()

    def _end(self, *, exit_within_s: float) -> None:
        if self._ended:
            return
        self._ended = True
        if self._renewed_at > -math.inf:
            self._watchdog.arm(exit_within_s)

    def healthy(self) -> bool:
        """Return whether the process is in order; a leader must not outlive its lease.

        False only if the watchdog itself has failed: the kubelet should restart the container.
        """
        held_s = self._clock.monotonic() - self._renewed_at
        return self._ended or held_s == math.inf or held_s <= self._timing.lease_s
