"""Whether this process leads, for all in it who must know. There is nothing to wait for here."""

import math

from dlctl.clock import Clock
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.watchdog import Watchdog


class LeaseValidity:
    """The time that a process may write for: begins with the lease, ends by itself, only once.

    Written to by the elector's thread alone, and read by any. There is no lock, since whoever held
    it might be what hangs: each field is one number or flag, and the order of the writes is safe.
    """

    def __init__(self, timing: LeaseTiming, clock: Clock, watchdog: Watchdog) -> None:
        self._timing = timing
        self._clock = clock
        self._watchdog = watchdog
        self._renewed_at = -math.inf
        self._ended = False

    def may_write(self) -> bool:
        """Tell whether the lease is ours beyond doubt; the answer is good for this moment only."""
        return not self._ended and self.remaining_s > 0

    @property
    def remaining_s(self) -> float:
        """Return how long it goes on without another renewal."""
        return self._renewed_at + self._timing.write_window_s - self._clock.monotonic()

    def extend(self, renewed_at: float) -> None:
        """Prolong it, from when the lease was renewed and not from now."""
        self._watchdog.arm(renewed_at + self._timing.renew_s - self._clock.monotonic())
        self._renewed_at = renewed_at

    def revoke(self) -> None:
        """Let nothing be written ever again, and the process end soon: no later than it was to."""
        margin_s = self._timing.margin_s
        self._end(exit_within_s=min(margin_s, self.remaining_s + margin_s))

    def resign(self) -> None:
        """Let nothing be written ever again; there is time for giving the lease back."""
        self._end(exit_within_s=self._timing.renew_s + self._timing.margin_s)

    def released(self) -> None:
        """Take note that the lease is given back, or left to others."""
        self._watchdog.disarm()

    def _end(self, *, exit_within_s: float) -> None:
        if self._ended:
            return
        self._ended = True
        if self._renewed_at > -math.inf:
            self._watchdog.arm(exit_within_s)

    def healthy(self, *, tolerance_s: float = 0.0) -> bool:
        """Tell whether all is as it should be; a leader may not outlive its lease.

        False only if the watchdog itself has failed, so whoever restarts us is to step in.
        """
        held_s = self._clock.monotonic() - self._renewed_at
        return self._ended or held_s == math.inf or held_s <= self._timing.lease_s + tolerance_s
