"""Exponential back-off: the wait after a number of failures in a row. Pure: nothing sleeps."""

import math

import attrs


@attrs.frozen
class Backoff:
    """The wait after the first failure, doubled for each further one, up to a cap.

    ``jitter`` is the largest fraction by which a wait is stretched, so that clients that failed
    together do not return together. Success for ``reset_s`` resets the count; the caller counts the
    failures.
    """

    base_s: float
    cap_s: float
    jitter: float = 0.0
    reset_s: float = math.inf

    def __attrs_post_init__(self) -> None:
        if not 0 < self.base_s <= self.cap_s:
            raise ValueError("expected 0 < base_s <= cap_s")

    def delay_s(self, failures: int, random: float = 0.0) -> float:
        """Return the seconds to wait; 0 without a failure. ``random`` is in [0, 1)."""
        if failures < 1:
            return 0.0
        try:
            grown_s = self.base_s * 2.0 ** (failures - 1)
        except OverflowError:
            grown_s = math.inf
        return jittered(min(grown_s, self.cap_s), self.jitter, random)


def jittered(delay_s: float, jitter: float, random: float) -> float:
    """Return the delay, stretched by up to the fraction ``jitter``."""
    return delay_s * (1 + jitter * random)
