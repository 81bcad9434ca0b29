"""A semaphore that tenants share fairly: none holds all slots, however many it requests."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager

import attrs


class FairSemaphore:
    """A number of slots, granted by tenant.

    A tenant gets another slot only while it holds fewer than are free, so a single one gets half of
    them, and each newcomer finds one. Of the waiting tenants, the one with the fewest slots is
    next, and of those with equally many the one that has waited longest.

    A few tenants that want many take all of them; a tenant without any then gets one of ``extra``
    slots, as long as there is one.
    """

    def __init__(self, count: int, *, extra: int = 0) -> None:
        if count < 1:
            raise ValueError("expected at least one slot")
        # Below zero while extra ones are in use.
        self._free = count
        self._extra = extra
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
            self._leave(tenant, one)

    @contextmanager
    def slot_now(self, tenant: Hashable) -> Iterator[bool]:
        """Hold a slot for the duration of the block if the tenant may have one; yield whether."""
        one = self._tenants.get(tenant) or _Tenant()
        if one.waiting or not self._may_take(one):
            yield False
            return
        self._tenants[tenant] = one
        one.user_count += 1
        self._take(one)
        try:
            yield True
        finally:
            self._release(one)
            self._leave(tenant, one)

    def _leave(self, tenant: Hashable, one: "_Tenant") -> None:
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
            self._take(tenant)
            granted.set_result(None)

    def _take(self, tenant: "_Tenant") -> None:
        self._free -= 1
        tenant.held_count += 1
        tenant.turn = next(self._turn_numbers)

    def _may_take(self, tenant: "_Tenant") -> bool:
        has_none = not tenant.held_count and self._free > -self._extra
        return has_none or tenant.held_count < self._free

    def _next(self) -> "_Tenant | None":
        ready = [t for t in self._tenants.values() if t.waiting and self._may_take(t)]
        return min(ready, key=lambda tenant: (tenant.held_count, tenant.turn), default=None)


@attrs.define(eq=False)
class _Tenant:
    # The number of users that hold a slot or wait for one.
    user_count: int = 0
    held_count: int = 0
    # When it last got a slot; 0 before the first.
    turn: int = 0
    waiting: deque["asyncio.Future[None]"] = attrs.field(factory=deque)
