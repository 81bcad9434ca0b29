"""Pauses between attempts on an API server that just failed."""

import asyncio
import random
from collections.abc import Callable
from typing import Final

import attrs

from dlctl.backoff import Backoff
from dlctl.clock import Clock, SystemClock
from dlctl.errors import DlctlError
from dlctl.kube.errors import ConnectRefusedError, ThrottledError

DEFAULT_BACKOFF: Final = Backoff(base_s=0.8, cap_s=30.0, jitter=1.0, reset_s=120.0)
# Refused connections cost no server anything, and the first attempt that succeeds ends the outage.
MAX_PAUSE_WHILE_DOWN_S: Final = 5.0
# Limit of the pause that a server or proxy may request.
MAX_RETRY_AFTER_S: Final = 300.0


@attrs.define
class ReflectorBackoff:
    """Pauses that grow with each failure, less while the server does not respond.

    They start over after a while without failures, and with the first failure after an outage: the
    server is back, and what the store has missed should not wait as long as the outage did.
    """

    clock: Clock = attrs.field(factory=SystemClock)
    random: Callable[[], float] = random.random
    backoff: Backoff = DEFAULT_BACKOFF
    _failures: int = attrs.field(init=False, default=0)
    _last: float = attrs.field(init=False, default=float("-inf"))
    _was_down: bool = attrs.field(init=False, default=False)

    def next_s(self, *, is_down: bool = False) -> float:
        """Return the length of the next pause in seconds."""
        now = self.clock.monotonic()
        is_back = self._was_down and not is_down
        if is_back or now - self._last > self.backoff.reset_s:
            self._failures = 0
        self._failures += 1
        self._last = now
        self._was_down = is_down
        backoff = self.backoff
        if is_down:
            backoff = attrs.evolve(backoff, cap_s=min(backoff.cap_s, MAX_PAUSE_WHILE_DOWN_S))
        return backoff.delay_s(self._failures, self.random())

    async def pause(self, at_least_s: float = 0.0, *, is_down: bool = False) -> None:
        """Wait; ``is_down`` if the server does not respond at all."""
        length_s = max(self.next_s(is_down=is_down), min(at_least_s, MAX_RETRY_AFTER_S))
        await asyncio.sleep(length_s)

    async def pause_after(self, error: DlctlError) -> None:
        """Wait after a request has failed, as long as the server asks for at least."""
        at_least_s = error.retry_after_s if isinstance(error, ThrottledError) else 0.0
        await self.pause(at_least_s, is_down=isinstance(error, ConnectRefusedError))
