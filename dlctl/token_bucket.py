"""A token bucket: limits bursts and the rate after them. Pure: nothing sleeps."""

import attrs


@attrs.define
class TokenBucket:
    """A bucket that starts full and gains a token every ``interval_s``, up to ``burst``."""

    interval_s: float
    burst: float
    _tokens: float = attrs.field(init=False, default=0.0)
    _refilled_at_s: float = attrs.field(init=False, default=float("-inf"))

    def reserve(self, now_s: float, tokens: float = 1.0) -> float:
        """Take the tokens; return how many seconds the caller must wait for them."""
        self._refill(now_s)
        self._tokens -= tokens
        return max(-self._tokens * self.interval_s, 0.0)

    def cancel(self) -> None:
        """Return a reserved token that was not used."""
        self._tokens += 1

    def try_take(self, now_s: float) -> bool:
        """Take a token if one is available; return whether it was."""
        self._refill(now_s)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refill(self, now_s: float) -> None:
        added = (now_s - self._refilled_at_s) / self.interval_s
        self._tokens = min(self._tokens + added, self.burst)
        self._refilled_at_s = now_s
