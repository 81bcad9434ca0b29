"""A semaphore that tenants share fairly: none holds all slots, however many it requests."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import attrs


class FairSemaphore:
    """A number of slots, granted by tenant.

    A tenant gets another slot only while it holds fewer than are free, so a single one gets half of
    them, and each newcomer finds one. Of the waiting tenants, the one with the fewest slots is
    next, and of those with equally many the one that has waited longest.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("expected at least one slot")
        self._free = count
        self._tenants: dict[Hashable, _Tenant] = {}
        self._turn_numbers = itertools.count(1)

    @asynccontextmanager
    async def slot(self, tenant: Hashable) -> AsyncIterator[None]:
        """Hold a slot for the duration of the block, once it is the tenant's turn."""
        one = self._tenants.setdefault(tenant, _Tenant())
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
                del self._tenants[tenant]

    async def _acquire(self, tenant: "_Tenant") -> None:
        granted = asyncio.get_running_loop().create_future()
        tenant.waiting.append(granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                # Granted and cancelled at the same moment.
                self._release(tenant)
            raise

    def _release(self, tenant: "_Tenant") -> None:
        self._free += 1
        tenant.held_count -= 1
        self._grant()

    def _grant(self) -> None:
        while (tenant := self._next()) is not None:
            granted = tenant.waiting.popleft()
            if granted.done():
                # Cancelled while waiting.
                continue
            self._free -= 1
            tenant.held_count += 1
            tenant.turn = next(self._turn_numbers)
            granted.set_result(None)

    def _next(self) -> "_Tenant | None":
        ready = [t for t in self._tenants.values() if t.waiting and t.held_count < self._free]
        return min(ready, key=lambda tenant: (tenant.held_count, tenant.turn), default=None)


@attrs.define(eq=False)
class _Tenant:
    # The number of users that hold a slot or wait for one.
    user_count: int = 0
    held_count: int = 0
    # When it last got a slot; 0 before the first.
    turn: int = 0
    waiting: deque["asyncio.Future[None]"] = attrs.field(factory=deque)
