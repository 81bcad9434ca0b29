"""How long a lease lasts and when its holder must stop: the settings, and their consequences.

Only elapsed time counts, on each machine's own clock. Clocks of two machines are never compared.
"""

import math
from typing import Final

import attrs

from dlctl.errors import ConfigError

# The largest fraction by which the pause between two attempts is stretched.
RETRY_JITTER: Final = 1.2


@attrs.frozen(kw_only=True)
class LeaseTiming:
    """The durations of an election in seconds; valid only if a holder stops before others start.

    The time between the renew deadline and the lease's duration covers requests in flight and
    clocks that run at different speeds.
    """

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0
    stall_s: float = 30.0

    def __attrs_post_init__(self) -> None:
        if not (0 < self.lease_s < math.inf and self.renew_s < self.lease_s):
            raise ConfigError(
                f"--leader-elect-lease-duration is {self.lease_s:g}: set it above "
                f"--leader-elect-renew-deadline, which is {self.renew_s:g}"
            )
        if not RETRY_JITTER * self.retry_s < self.renew_s:
            raise ConfigError(
                f"--leader-elect-renew-deadline is {self.renew_s:g}: set it above "
                f"{RETRY_JITTER} times --leader-elect-retry-period, which is {self.retry_s:g}"
            )
        if not self.retry_s > 0:
            raise ConfigError("--leader-elect-retry-period must be above 0")
        if not self.stall_s > self.retry_s:
            raise ConfigError(
                f"--leader-elect-stall-timeout is {self.stall_s:g}: set it above "
                f"--leader-elect-retry-period, which is {self.retry_s:g}"
            )

    @property
    def lease_seconds(self) -> int:
        """Return the duration to write into the lease, in whole seconds."""
        return math.ceil(self.lease_s)

    @property
    def request_timeout_s(self) -> float:
        """Return the timeout of one request: two must fit into the renew deadline."""
        return self.renew_s / 2

    @property
    def margin_s(self) -> float:
        """Return the seconds between the last write and the exit of a process without the lease."""
        return min(1.0, self.renew_s / 10)

    @property
    def write_window_s(self) -> float:
        """Return the seconds after a renewal during which its holder may write."""
        return self.renew_s - self.margin_s
