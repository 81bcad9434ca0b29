"""Liveness of an event loop, as seen from another thread."""

import asyncio
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class LoopLiveness:
    """Probes an event loop with a callback, and measures how long it takes to respond.

    Probe from one thread only. The loop responds without a task.
    """

    loop: asyncio.AbstractEventLoop
    monotonic: Callable[[], float]
    _probed_at: float | None = attrs.field(init=False, default=None)

    def probe(self) -> float:
        """Return the age in seconds of the unanswered probe; without one, send one."""
        probed_at = self._probed_at
        if probed_at is not None:
            return self.monotonic() - probed_at
        self._probed_at = self.monotonic()
        self.loop.call_soon_threadsafe(self._respond)
        return 0.0

    def _respond(self) -> None:
        self._probed_at = None
