"""A semaphore whose next slot goes to the waiter with the lowest key, not to the first one."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K")


class PrioritySemaphore(Generic[K]):
    """A number of slots, which may change; equal keys are served in order of arrival."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._held_count = 0
        self._arrivals = itertools.count()
        # Cancelled waiters are skipped when it is their turn.
        self._heap: list[tuple[K, int, asyncio.Future[None]]] = []
        self._waiting_count = 0

    @property
    def held_count(self) -> int:
        return self._held_count

    @property
    def waiting_count(self) -> int:
        return self._waiting_count

    def resize(self, count: int) -> None:
        """Change the number of slots; slots in use above it are not granted again."""
        self._count = count
        self._grant()

    @asynccontextmanager
    async def slot(self, key: K) -> AsyncIterator[None]:
        """Hold a slot for the duration of the block."""
        if self._waiting_count or self._held_count >= self._count:
            await self._wait(key)
        else:
            self._held_count += 1
        try:
            yield
        finally:
            self._release()

    async def _wait(self, key: K) -> None:
        granted = asyncio.get_running_loop().create_future()
        heapq.heappush(self._heap, (key, next(self._arrivals), granted))
        self._waiting_count += 1
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._waiting_count -= 1
                self._drop_cancelled()
            else:
                # Granted and cancelled at the same moment.
                self._release()
            raise

    def _release(self) -> None:
        self._held_count -= 1
        self._grant()

    def _grant(self) -> None:
        while self._heap and self._held_count < self._count:
            *_, granted = heapq.heappop(self._heap)
            if not granted.done():
                self._waiting_count -= 1
                self._held_count += 1
                granted.set_result(None)

    def _drop_cancelled(self) -> None:
        # Thousands of cancelled waiters would otherwise stay for as long as the slots are held.
        if len(self._heap) > 64 + 2 * self._waiting_count:
            self._heap = [entry for entry in self._heap if not entry[-1].done()]
            heapq.heapify(self._heap)
