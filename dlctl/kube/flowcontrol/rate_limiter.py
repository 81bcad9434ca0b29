"""Client-side rate limit of requests.

Off by default: the server's own fairness is better, since it sees all clients.
"""

import asyncio
import math
from typing import Self

from dlctl.token_bucket import TokenBucket


class RateLimiter:
    """Lets ``qps`` requests per second pass, and up to ``burst`` at once after a pause.

    Requests pass in order of arrival.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._bucket = TokenBucket(1 / qps, burst)

    @classmethod
    def from_settings(cls, qps: float, burst: int) -> Self | None:
        """Return the limiter for the two settings, or None if unlimited."""
        return cls(qps, burst or max(1, math.ceil(qps))) if qps > 0 else None

    async def wait(self) -> float:
        """Wait until a request may pass; return how many seconds that took."""
        wait_s = self._bucket.reserve(asyncio.get_running_loop().time())
        if not wait_s:
            return 0.0
        try:
            await asyncio.sleep(wait_s)
        except asyncio.CancelledError:
            # Leave the unused turn to the next request.
            self._bucket.cancel()
            raise
        return wait_s
