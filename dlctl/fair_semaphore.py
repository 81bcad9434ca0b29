"""A semaphore that tenants share fairly, however many slots one of them requests."""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import attrs


class FairSemaphore:
    """A number of slots, granted by priority and tenant.

    Of the waiting tenants, those of the lowest ``priority`` number go first; of these the one with
    the fewest slots, and of those with equally many the one that has waited longest. A tenant has
    slots of its own in each priority.

    With ``leave_free``, a tenant gets another slot only while it holds fewer than are free, so a
    single one gets half of them, and each newcomer finds one: for slots that are held for minutes.
    """

    def __init__(self, count: int, *, leave_free: bool = False) -> None:
        if count < 1:
            raise ValueError("expected at least one slot")
        self._count = count
        self._free = count
        self._leave_free = leave_free
        self._tenants: dict[tuple[int, Hashable], _Tenant] = {}
        self._turn_numbers = itertools.count(1)
        # Tenants that wait, the next one first. An entry is void once its tenant has a newer one.
        self._heap: list[tuple[int, int, int, int, _Tenant]] = []
        self._waiting_count = 0

    @property
    def held_count(self) -> int:
        return self._count - self._free

    @property
    def waiting_count(self) -> int:
        return self._waiting_count

    def resize(self, count: int) -> None:
        """Change the number of slots; slots in use above it are not granted again."""
        self._free += count - self._count
        self._count = count
        self._grant()

    @asynccontextmanager
    async def slot(self, tenant: Hashable, priority: int = 0) -> AsyncIterator[None]:
        """Hold a slot for the duration of the block, once it is the tenant's turn."""
        key = (priority, tenant)
        one = self._tenants.setdefault(key, _Tenant(priority))
        one.user_count += 1
        try:
            await self._acquire(one)
            try:
                yield
            finally:
                self._release(one)
        finally:
            one.user_count -= 1
            if not one.user_count:
                del self._tenants[key]

    async def _acquire(self, tenant: "_Tenant") -> None:
        granted = asyncio.get_running_loop().create_future()
        tenant.waiting.append(granted)
        if len(tenant.waiting) == 1:
            self._enqueue(tenant)
        self._waiting_count += 1
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._waiting_count -= 1
            else:
                # Granted and cancelled at the same moment.
                self._release(tenant)
            raise

    def _release(self, tenant: "_Tenant") -> None:
        self._free += 1
        tenant.held_count -= 1
        if tenant.waiting:
            self._enqueue(tenant)
        self._grant()

    def _grant(self) -> None:
        while self._free > 0 and (tenant := self._next()) is not None:
            granted = tenant.waiting.popleft()
            self._free -= 1
            self._waiting_count -= 1
            tenant.held_count += 1
            tenant.turn = next(self._turn_numbers)
            if tenant.waiting:
                self._enqueue(tenant)
            granted.set_result(None)

    def _next(self) -> "_Tenant | None":
        """Return the tenant whose turn it is, without its cancelled waiters."""
        while self._heap:
            *_, version, tenant = self._heap[0]
            if version != tenant.version or not tenant.has_waiters():
                heapq.heappop(self._heap)
            elif self._leave_free and tenant.held_count >= self._free:
                # Those behind it hold at least as many.
                return None
            else:
                heapq.heappop(self._heap)
                return tenant
        return None

    def _enqueue(self, tenant: "_Tenant") -> None:
        # Versions are unique, so that tenants are never compared.
        tenant.version = next(self._turn_numbers)
        entry = (tenant.priority, tenant.held_count, tenant.turn, tenant.version, tenant)
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 64 + 4 * len(self._tenants):
            self._heap = [entry for entry in self._heap if entry[-2] == entry[-1].version]
            heapq.heapify(self._heap)


@attrs.define(eq=False)
class _Tenant:
    priority: int
    # Those that hold a slot or wait for one.
    user_count: int = 0
    held_count: int = 0
    # When it last got a slot; 0 before the first.
    turn: int = 0
    # Of its valid entry in the heap.
    version: int = 0
    waiting: deque["asyncio.Future[None]"] = attrs.field(factory=deque)

    def has_waiters(self) -> bool:
        while self.waiting and self.waiting[0].done():
            # Cancelled while waiting.
            del self.waiting[0]
        return bool(self.waiting)
