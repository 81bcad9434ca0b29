"""Pauses between attempts on an API server that just failed."""

import asyncio
import random
from collections.abc import Callable
from typing import Final

import attrs

from dlctl.backoff import Backoff
from dlctl.clock import Clock, SystemClock

DEFAULT_BACKOFF: Final = Backoff(base_s=0.8, cap_s=30.0, jitter=1.0, reset_s=120.0)
# Limit of the pause that a server or proxy may request.
MAX_RETRY_AFTER_S: Final = 300.0


@attrs.define
class ReflectorBackoff:
    """Pauses that grow with each failure, and reset after a while without failures."""

    clock: Clock = attrs.field(factory=SystemClock)
    random: Callable[[], float] = random.random
    backoff: Backoff = DEFAULT_BACKOFF
    _failures: int = attrs.field(init=False, default=0)
    _last: float = attrs.field(init=False, default=float("-inf"))

    def next_s(self) -> float:
        """Return the length of the next pause in seconds."""
        now = self.clock.monotonic()
        self._failures = 1 if now - self._last > self.backoff.reset_s else self._failures + 1
        self._last = now
        return self.backoff.delay_s(self._failures, self.random())

    async def pause(self, at_least_s: float = 0.0) -> None:
        await asyncio.sleep(max(self.next_s(), min(at_least_s, MAX_RETRY_AFTER_S)))
