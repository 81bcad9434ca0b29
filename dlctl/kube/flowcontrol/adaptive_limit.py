"""How many requests a server can take at the same time, learned from its responses. Pure.

Additive increase, multiplicative decrease, as in TCP: one request more after each full round of
fast responses, a third fewer after a sign of congestion. In between, where requests wait for each
other in the server, one fewer after each round, down to the number at the start.
"""

from typing import Final

import attrs

# Less would be too little for a server that sends pods, but no events, through a slow webhook.
_INITIAL: Final = 32
MIN: Final = 4
# With more, a single Python process only waits for itself.
MAX: Final = 128
_DECREASE: Final = 0.7
# The API server's own objective for writes is 1 s.
_CONGESTED_S: Final = 1.0
# Responses count as congested only above this multiple of the fastest one: admission webhooks may
# make every write slow, and sending fewer does not change that.
_CONGESTED_RATIO: Final = 4.0
# Up to this latency, more requests in flight are served sooner; above it, they only wait longer,
# and so do the requests of other jobs behind them. For a server that is never this fast, the
# threshold is twice its fastest latency.
_QUICK_S: Final = 0.1
_QUICK_RATIO: Final = 2.0
_MAX_QUICK_S: Final = 0.25
# How long the fastest response is remembered: up to twice as long.
_WINDOW_S: Final = 60.0


@attrs.define
class AdaptiveLimit:
    """A number of concurrent requests; times are in seconds of one monotonic clock."""

    _limit: float = float(_INITIAL)
    _decreased_at: float = attrs.field(init=False, default=float("-inf"))
    _window_end: float = attrs.field(init=False, default=float("-inf"))
    _fastest_s: float = attrs.field(init=False, default=float("inf"))
    _last_fastest_s: float = attrs.field(init=False, default=float("inf"))

    @property
    def count(self) -> int:
        return int(self._limit)

    def observe_response(self, sent_at: float, now: float, *, is_full: bool) -> None:
        """Take a response into account; ``is_full`` if the limit was reached meanwhile."""
        latency_s = now - sent_at
        self._observe_latency(latency_s, now)
        fastest_s = min(self._fastest_s, self._last_fastest_s)
        quick_s = _MAX_QUICK_S
        if self._limit >= _INITIAL:
            quick_s = min(max(_QUICK_S, _QUICK_RATIO * fastest_s), _MAX_QUICK_S)
        if latency_s > max(_CONGESTED_S, _CONGESTED_RATIO * fastest_s):
            self.observe_congestion(sent_at, now)
        elif is_full and latency_s < quick_s:
            self._limit = min(self._limit + 1 / self._limit, MAX)
        elif self._limit > _INITIAL and latency_s > 2 * max(quick_s, fastest_s):
            self._limit = max(self._limit - 1 / self._limit, _INITIAL)

    def observe_congestion(self, sent_at: float, now: float) -> None:
        """Take into account that the server was overloaded or did not respond."""
        # All requests of one round report the same congestion.
        if sent_at >= self._decreased_at:
            self._limit = max(self._limit * _DECREASE, MIN)
            self._decreased_at = now

    def _observe_latency(self, latency_s: float, now: float) -> None:
        if now >= self._window_end:
            self._last_fastest_s, self._fastest_s = self._fastest_s, float("inf")
            self._window_end = now + _WINDOW_S
        self._fastest_s = min(self._fastest_s, latency_s)
