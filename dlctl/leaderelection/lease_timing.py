"""How long a lease holds and when its holder must stop: the settings, and what follows from them.

Only elapsed time counts, by the clock of the machine that measures it. No two machines' clocks
are ever compared.
"""

import math
import time
from typing import Final

import attrs

from dlctl.clock import SystemClock
from dlctl.errors import ConfigError

# The fraction that stretches the pause between two tries at most.
RETRY_JITTER: Final = 1.2


@attrs.frozen(kw_only=True)
class LeaseTiming:
    """The durations of an election, in seconds; refused unless a holder stops before others start.

    What lies between the renew deadline and the lease's duration is for what has been sent and
    not arrived yet, and for clocks that do not run equally fast.
    """

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0
    stall_s: float = 30.0

    def __attrs_post_init__(self) -> None:
        if not (0 < self.lease_s < math.inf and self.renew_s < self.lease_s):
            raise ConfigError(
                f"--leader-elect-lease-duration is {self.lease_s:g}: it must be above "
                f"--leader-elect-renew-deadline, which is {self.renew_s:g}"
            )
        if not RETRY_JITTER * self.retry_s < self.renew_s:
            raise ConfigError(
                f"--leader-elect-renew-deadline is {self.renew_s:g}: it must be above "
                f"{RETRY_JITTER} times --leader-elect-retry-period, which is {self.retry_s:g}"
            )
        if not self.retry_s > 0:
            raise ConfigError("--leader-elect-retry-period must be above 0")
        if not self.stall_s > self.retry_s:
            raise ConfigError(
                f"--leader-elect-stall-timeout is {self.stall_s:g}: it must be above "
                f"--leader-elect-retry-period, which is {self.retry_s:g}"
            )

    @property
    def lease_seconds(self) -> int:
        """Return what is written into the lease, which takes whole seconds."""
        return math.ceil(self.lease_s)

    @property
    def request_timeout_s(self) -> float:
        """Return how long one request may take: two must fit into the renew deadline."""
        return self.renew_s / 2

    @property
    def margin_s(self) -> float:
        """Return the time between the last write and the end of a process that lost the lease."""
        return min(1.0, self.renew_s / 10)

    @property
    def write_window_s(self) -> float:
        """Return for how long after a renewal its holder may write."""
        return self.renew_s - self.margin_s


class BoottimeClock(SystemClock):
    """A monotonic clock that also counts the time that the machine was suspended.

    Otherwise a laptop's controller would wake up believing that its lease was renewed just now.
    """

    def monotonic(self) -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()
