"""A limit of our own on how fast requests go out.

Off unless asked for: the server's fairness is better, since it knows what others ask of it.
"""

import asyncio
import math
from typing import Self


class TokenBucket:
    """Lets ``qps`` requests a second pass, and ``burst`` at once after a pause.

    Who comes first is served first.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._interval_s = 1 / qps
        self._burst_s = self._interval_s * (burst - 1)
        # When the bucket would be full again, on the clock of the event loop.
        self._full_at = -math.inf

    @classmethod
    def from_settings(cls, qps: float, burst: int) -> Self | None:
        """Return the bucket of two settings, or None where nothing is limited."""
        return cls(qps, burst or max(1, math.ceil(qps))) if qps > 0 else None

    async def wait(self) -> float:
        """Wait until a request may pass; return for how many seconds that was."""
        now = asyncio.get_running_loop().time()
        self._full_at = max(self._full_at, now) + self._interval_s
        wait_s = self._full_at - self._interval_s - self._burst_s - now
        if wait_s <= 0:
            return 0.0
        try:
            await asyncio.sleep(wait_s)
        except asyncio.CancelledError:
            # Whoever comes next may have the turn that is not used.
            self._full_at -= self._interval_s
            raise
        return wait_s
