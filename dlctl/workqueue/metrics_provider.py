"""Metrics of a queue: how many keys it has, how long they wait and are processed.

Optional for the queue. Implementations of the protocol decide where the metrics go.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

K = TypeVar("K")


class MetricsProvider(Protocol):
    """Receives the metrics of one queue, synchronously and often: must be fast."""

    def depth(self, priority: int, keys: int) -> None:
        """Set the number of ready keys of a priority."""
        ...

    def added(self) -> None:
        """Count an added key that was not queued already."""
        ...

    def retried(self) -> None:
        """Count a key added with a delay."""
        ...

    def waited(self, seconds: float) -> None:
        """Record the time from a key's first add until a worker got it."""
        ...

    def worked(self, seconds: float) -> None:
        """Record the time that a worker processed a key."""
        ...

    def set_ages_source(self, ages_s: Callable[[], Sequence[float]]) -> None:
        """Register a function that returns the processing times so far of all keys in progress."""
        ...


class QueueTimer(Generic[K]):
    """The times when keys were added and taken, on the loop's clock."""

    def __init__(self, metrics: MetricsProvider) -> None:
        self.metrics = metrics
        self._added_at: dict[K, float] = {}
        self._taken_at: dict[K, float] = {}
        metrics.set_ages_source(self.ages_s)

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
        """Return the processing times so far of all keys in progress; only in the loop's thread."""
        if not self._taken_at:
            return ()
        now = asyncio.get_running_loop().time()
        return [now - taken for taken in self._taken_at.values()]
