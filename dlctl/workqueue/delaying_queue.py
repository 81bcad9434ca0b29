"""Keys that become ready later: one heap and one timer, however many keys wait.

A key waits only once, for its earliest deadline. The caller decides what happens then.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

K = TypeVar("K")

# Deadline on the loop's clock, order of arrival (so that keys are never compared), key, priority.
_Entry: TypeAlias = tuple[float, int, K, int]

# Thousands may be due at the same time: the event loop runs in between.
_MAX_PER_TURN: Final = 250
# A heap of mostly dead entries is rebuilt only above this size.
_MIN_COMPACT: Final = 64


class DelayingQueue(Generic[K]):
    """A set of waiting keys that calls ``on_due(key, priority)`` for each at its deadline.

    Keys that are due together are passed on in the order of their deadlines.
    """

    def __init__(self, on_due: Callable[[K, int], None]) -> None:
        self._on_due = on_due
        # Invariant: each value is in the heap; a heap entry that is not here is dead.
        self.waiting: dict[K, _Entry[K]] = {}
        self._heap: list[_Entry[K]] = []
        self._arrivals = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, key: K, delay_s: float, priority: int) -> None:
        """Add the key; if it already waits, the earlier deadline and the higher priority win."""
        deadline = asyncio.get_running_loop().time() + delay_s
        old = self.waiting.get(key)
        if old is not None:
            deadline, priority = min(deadline, old[0]), max(priority, old[3])
            if (deadline, priority) == (old[0], old[3]):
                return
        self._arrivals += 1
        entry = (deadline, self._arrivals, key, priority)
        self.waiting[key] = entry
        heapq.heappush(self._heap, entry)
        self._compact()
        self._arm_timer()

    def pop(self, key: K) -> int | None:
        """Remove the key; return its priority, or None if it was not waiting."""
        entry = self.waiting.pop(key, None)
        return None if entry is None else entry[3]

    def clear(self) -> None:
        self.waiting.clear()
        self._heap.clear()
        if self._timer is not None:
            # The event loop would keep the queue until the time of the next key.
            self._timer.cancel()
            self._timer = None

    def _compact(self) -> None:
        # A key that waits for an hour, is taken early and waits again leaves a dead entry each
        # time; they would accumulate for that hour.
        if len(self._heap) > 2 * len(self.waiting) + _MIN_COMPACT:
            self._heap = list(self.waiting.values())
            heapq.heapify(self._heap)

    def _arm_timer(self) -> None:
        if not self._heap:
            return
        deadline = self._heap[0][0]
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(deadline, self._fire, deadline)

    def _fire(self, deadline: float) -> None:
        self._timer = None
        # A loop may run a timer early, by up to its clock's resolution.
        now = max(deadline, asyncio.get_running_loop().time())
        for _ in range(_MAX_PER_TURN):
            if not self._heap or self._heap[0][0] > now:
                break
            entry = heapq.heappop(self._heap)
            key, priority = entry[2:]
            if self.waiting.get(key) is entry:
                del self.waiting[key]
                self._on_due(key, priority)
        self._arm_timer()
