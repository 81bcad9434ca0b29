"""Whether an event loop still turns, as seen from another thread."""

import asyncio
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class LoopLiveness:
    """Asks an event loop to call back, and tells for how long it has not.

    Asking must be done from one thread only. No task of the loop is needed for answering.
    """

    loop: asyncio.AbstractEventLoop
    monotonic: Callable[[], float]
    _probed_at: float | None = attrs.field(init=False, default=None)

    def unresponsive_s(self) -> float:
        """Return the age of the question that is not answered; if there is none, ask one."""
        asked_at = self._probed_at
        if asked_at is not None:
            return self.monotonic() - asked_at
        self._probed_at = self.monotonic()
        self.loop.call_soon_threadsafe(self._respond)
        return 0.0

    def _respond(self) -> None:
        self._probed_at = None
