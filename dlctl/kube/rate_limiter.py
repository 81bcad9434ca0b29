"""A limit of our own on how fast requests go out.

Off unless asked for: the server's fairness is better, since it knows what others ask of it.
"""

import asyncio
import math
from typing import Self

from dlctl.token_bucket import TokenBucket


class RateLimiter:
    """Lets ``qps`` requests a second pass, and ``burst`` at once after a pause.

    First come, first served.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._bucket = TokenBucket(1 / qps, burst)

    @classmethod
    def from_settings(cls, qps: float, burst: int) -> Self | None:
        """Return the limiter of two settings, or None where nothing is limited."""
        return cls(qps, burst or max(1, math.ceil(qps))) if qps > 0 else None

    async def wait(self) -> float:
        """Wait until a request may pass; return for how many seconds that was."""
        wait_s = self._bucket.reserve(asyncio.get_running_loop().time())
        if not wait_s:
            return 0.0
        try:
            await asyncio.sleep(wait_s)
        except asyncio.CancelledError:
            # The next request may have the turn that is not used.
            self._bucket.cancel()
            raise
        return wait_s
