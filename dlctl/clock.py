"""Where the time comes from: wall time for what is written down, monotonic time for waiting.

Durations are float seconds. Tests pass a :class:`Clock` of their own.
"""

import datetime
import time
from typing import Final, Protocol

# The default of missing times.
EPOCH: Final = datetime.datetime.fromtimestamp(0, datetime.UTC)


class Clock(Protocol):
    """Two clocks: they must never be compared with each other."""

    def now(self) -> datetime.datetime:
        """Return the wall time, in UTC; it may jump."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed point; it never goes back."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class BoottimeClock(SystemClock):
    """A monotonic clock that keeps counting while the machine is suspended.

    Otherwise a controller on a laptop would wake up believing that it had just renewed its lease.
    """

    def monotonic(self) -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


def timestamp(time: datetime.datetime) -> str:
    """Return the time as the Kubernetes API writes it: in UTC, in whole seconds."""
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
