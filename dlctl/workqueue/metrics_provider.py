"""What a queue tells of itself: how many keys, how long they waited, how long they were worked on.

The queue runs the same without it. Where the figures go is for the implementation of the protocol.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

K = TypeVar("K")


class MetricsProvider(Protocol):
    """Receives the figures of one queue, synchronously and often: it must be quick."""

    def depth(self, priority: int, keys: int) -> None:
        """Take the number of ready keys of a priority."""
        ...

    def added(self) -> None:
        """Count a key that was not already asked for."""
        ...

    def retried(self) -> None:
        """Count a key that was asked for with a delay."""
        ...

    def waited(self, seconds: float) -> None:
        """Take the time from the first add of a key until a worker got it."""
        ...

    def worked(self, seconds: float) -> None:
        """Take the time that a worker held a key."""
        ...

    def running(self, ages_s: Callable[[], Sequence[float]]) -> None:
        """Take a function that tells for how long each key being worked on has been held."""
        ...


class QueueTimer(Generic[K]):
    """When keys were added and taken, on the loop's clock."""

    def __init__(self, metrics: MetricsProvider) -> None:
        self.metrics = metrics
        self._added_at: dict[K, float] = {}
        self._taken_at: dict[K, float] = {}
        metrics.running(self.ages_s)

    def added(self, key: K) -> None:
        self._added_at[key] = asyncio.get_running_loop().time()
        self.metrics.added()

    def taken(self, key: K) -> None:
        now = asyncio.get_running_loop().time()
        self._taken_at[key] = now
        self.metrics.waited(now - self._added_at.pop(key, now))

    def finished(self, key: K) -> None:
        now = asyncio.get_running_loop().time()
        self.metrics.worked(now - self._taken_at.pop(key, now))

    def ages_s(self) -> Sequence[float]:
        """Return for how long each key being worked on has been held; in the loop's thread only."""
        if not self._taken_at:
            return ()
        now = asyncio.get_running_loop().time()
        return [now - taken for taken in self._taken_at.values()]
