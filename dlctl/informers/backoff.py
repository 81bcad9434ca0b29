"""How long to leave an API server alone that has just failed."""

import asyncio
import random
from collections.abc import Callable

import attrs

from dlctl.clock import Clock, SystemClock


@attrs.define
class ReflectorBackoff:
    """Pauses that double up to a cap, and start over once all has been well for a while.

    The actual pause is between one and two times the nominal one: the clients of a server that
    was restarted must not come back all at once.
    """

    clock: Clock = attrs.field(factory=SystemClock)
    jitter: Callable[[], float] = random.random
    first_s: float = 0.8
    cap_s: float = 30.0
    # What a server, or a proxy before it, may ask for.
    max_s: float = 300.0
    reset_after_s: float = 120.0
    _nominal_s: float = attrs.field(init=False, default=0.0)
    _last: float = attrs.field(init=False, default=float("-inf"))

    def next_s(self) -> float:
        """Return the length of the next pause."""
        now = self.clock.monotonic()
        fresh = now - self._last > self.reset_after_s
        self._last = now
        self._nominal_s = self.first_s if fresh else min(self._nominal_s * 2, self.cap_s)
        return self._nominal_s * (1 + self.jitter())

    async def pause(self, at_least_s: float = 0.0) -> None:
        await asyncio.sleep(max(self.next_s(), min(at_least_s, self.max_s)))
