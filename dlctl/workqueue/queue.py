"""The work queue: which key a worker takes next, and that no two workers have the same one.

For one event loop: nothing here locks, and nothing but :meth:`WorkQueue.get`
waits. It carries keys, not events: what happened is read elsewhere.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dlctl.errors import DlctlError
from dlctl.workqueue.delaying_queue import DelayingQueue
from dlctl.workqueue.fair_level import FairLevel
from dlctl.workqueue.item_backoff import ItemBackoff
from dlctl.workqueue.metrics_provider import MetricsProvider, QueueTimer

K = TypeVar("K")


class QueueShutDown(DlctlError):  # noqa: N818 - named as in the standard library
    """The queue is shut down and empty."""


class WorkQueue(Generic[K]):
    """A set of keys in order of priority, then of arrival; within a priority, tenants take turns.

    A key is queued at most once, and processed by one worker at a time; a key added during
    processing is queued again after :meth:`done`. Higher priorities go first and may starve lower
    ones.
    """

    def __init__(
        self,
        *,
        backoff: ItemBackoff[K] | None = None,
        metrics: MetricsProvider | None = None,
        tenant_of: Callable[[K], Hashable] = lambda _: None,
    ) -> None:
        self._tenant_of = tenant_of
        self._backoff: ItemBackoff[K] = backoff or ItemBackoff()
        self._timer: QueueTimer[K] | None = QueueTimer(metrics) if metrics else None
        # Keys that need processing, with their priority.
        self._dirty: dict[K, int] = {}
        # Keys being processed, with the priority at which they were taken.
        self._processing: dict[K, int] = {}
        # Invariant: a key in a level is in _dirty at that priority and not in _processing.
        self._levels: dict[int, FairLevel[K]] = {}
        # The same levels, highest first. Empty ones stay: there are few priorities.
        self._by_priority: list[tuple[int, FairLevel[K]]] = []
        self._ready_count = 0
        self._delaying: DelayingQueue[K] = DelayingQueue(
            lambda key, priority: self.add(key, priority=priority)
        )
        # Waiters get a wake-up, never a key: a cancelled waiter cannot lose one.
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """Return the number of ready keys: neither delayed nor being processed."""
        return self._ready_count

    def is_queued(self, key: K) -> bool:
        """Return whether the key was added and not taken since; a delayed one is not yet added.

        Of a key being processed, whether it was added at no lower priority.
        """
        priority = self._dirty.get(key)
        return priority is not None and priority >= self._processing.get(key, priority)

    def add(self, key: K, *, priority: int = 0) -> None:
        """Add the key now; does nothing once the queue is shut down.

        Adding it again has no effect, except that a higher priority moves it to the end of the new
        level, and that a delayed key becomes ready.
        """
        if self._closed:
            return
        old = self._dirty.get(key)
        if old is not None:
            self._raise_priority(key, old, priority)
            return
        if self._delaying.waiting:
            waited = self._delaying.pop(key)
            if waited is not None and waited > priority:
                priority = waited
        self._dirty[key] = priority
        if self._timer is not None:
            self._timer.added(key)
        if key not in self._processing:
            self._enqueue(key, priority)

    def add_after(self, key: K, delay_s: float, *, priority: int | None = None) -> None:
        """Add the key after a delay in seconds; the earliest of several deadlines counts.

        Without a priority, a key being processed keeps the priority at which it was taken. A key
        that is ready stays ready.
        """
        if self._closed:
            return
        if priority is None:
            priority = self._processing.get(key, 0)
        if delay_s > 0 and self._timer is not None:
            self._timer.metrics.retried()
        if delay_s <= 0 or key in self._dirty:
            self.add(key, priority=priority)
        else:
            self._delaying.add(key, delay_s, priority)

    def add_rate_limited(self, key: K) -> None:
        """Add the key after its back-off, which doubles each time until forgotten."""
        self.add_after(key, self._backoff.next_delay_s(key))

    def forget(self, key: K) -> None:
        """Reset the key's back-off; a pending delay is kept."""
        self._backoff.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return how often the key was added rate-limited since it was last forgotten."""
        return self._backoff.failures(key)

    async def get(self) -> K:
        """Wait for a key and take it; :meth:`done` must follow in any case.

        After a shutdown, the remaining keys are still handed out, then :class:`QueueShutDown` is
        raised. A cancelled call takes no key.
        """
        while not self._ready_count:
            if self._closed:
                raise QueueShutDown("the work queue is shut down")
            await self._wait()
        for _, level in self._by_priority:
            if level.count:
                break
        else:
            raise AssertionError("a ready key is in no level")
        key = level.pop()
        self._ready_count -= 1
        priority = self._dirty.pop(key)
        self._processing[key] = priority
        if self._timer is not None:
            self._timer.metrics.depth(priority, level.count)
            self._timer.taken(key)
        return key

    def done(self, key: K) -> None:
        """Finish processing; if the key was added meanwhile, it goes to the end of its level."""
        if self._processing.pop(key, None) is None:
            raise ValueError(f"no worker has taken {key}")
        if self._timer is not None:
            self._timer.finished(key)
        priority = self._dirty.get(key)
        if priority is not None:
            self._enqueue(key, priority)

    def shut_down(self) -> None:
        """Reject new keys, drop delayed ones, release the waiting workers."""
        self._closed = True
        self._delaying.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _raise_priority(self, key: K, old: int, new: int) -> None:
        if new <= old:
            return
        self._dirty[key] = new
        if key in self._processing:
            return
        level = self._levels[old]
        level.remove(key)
        self._ready_count -= 1
        if self._timer is not None:
            self._timer.metrics.depth(old, level.count)
        # A waiter was woken for this key when it became ready; waking another is harmless.
        self._enqueue(key, new)

    def _enqueue(self, key: K, priority: int) -> None:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = FairLevel(self._tenant_of)
            self._by_priority = sorted(self._levels.items(), reverse=True)
        level.append(key)
        self._ready_count += 1
        if self._timer is not None:
            self._timer.metrics.depth(priority, level.count)
        if self._waiters:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and self._ready_count:
                # Woken and cancelled in the same iteration of the loop: pass the wake-up on.
                self._wake_one()
            raise
