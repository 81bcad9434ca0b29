"""A semaphore that tenants share fairly: none holds all slots, however many it requests."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

import attrs


class FairSemaphore:
    """A number of slots of one event loop, granted by tenant.

    A tenant gets another slot only while it holds fewer than are free, so a single one gets half of
    them, and each newcomer finds one. Of the waiting tenants, the one with the fewest slots is
    next, and of those with equally many the one that has waited longest.

    A few tenants that want many take all of them; a tenant without any then gets one of ``extra``
    slots, as long as there is one.
    """

    def __init__(self, count: int, *, extra: int = 0) -> None:
        # Below zero while extra ones are in use.
        self._free = count
        self._extra = extra
        self._tenants: dict[Hashable, _Tenant] = {}
        self._turn_numbers = itertools.count()

    @asynccontextmanager
    async def slot(self, tenant: Hashable) -> AsyncIterator[None]:
        """Hold a slot for the duration of the block, once it is the tenant's turn."""
        granted = asyncio.Event()
        request = self.request(tenant, granted.set)
        try:
            if not request.is_granted:
                await granted.wait()
            yield
        finally:
            self.end(request)

    def request(self, tenant: Hashable, on_granted: Callable[[], None]) -> "SlotRequest":
        """Request a slot, up to :meth:`end`; ``on_granted`` is called if it is granted later."""
        one = self._tenants.get(tenant)
        if one is None:
            # Not before those who have waited since.
            one = self._tenants[tenant] = _Tenant(next(self._turn_numbers))
        request = SlotRequest(tenant, on_granted)
        one.waiting.append(request)
        self._grant(request)
        return request

    def end(self, request: "SlotRequest") -> None:
        """Free the slot of a request, or withdraw it; once."""
        one = self._tenants[request.tenant]
        if request.is_granted:
            self._free += 1
            one.held_count -= 1
            one.turn = next(self._turn_numbers)
        else:
            one.waiting.remove(request)
        if not one.held_count and not one.waiting:
            del self._tenants[request.tenant]
        self._grant()

    def _grant(self, new: "SlotRequest | None" = None) -> None:
        while (tenant := self._next()) is not None:
            request = tenant.waiting.popleft()
            self._free -= 1
            tenant.held_count += 1
            tenant.turn = next(self._turn_numbers)
            request.is_granted = True
            if request is not new:
                request.on_granted()

    def _next(self) -> "_Tenant | None":
        if self._free <= -self._extra:
            return None
        ready = [t for t in self._tenants.values() if t.waiting and self._may_take(t)]
        return min(ready, key=lambda tenant: (tenant.held_count, tenant.turn), default=None)

    def _may_take(self, tenant: "_Tenant") -> bool:
        has_none = not tenant.held_count and self._free > -self._extra
        return has_none or tenant.held_count < self._free


@attrs.define(eq=False)
class SlotRequest:
    """A request for a slot, which keeps its place among the tenant's others."""

    tenant: Hashable
    on_granted: Callable[[], None]
    is_granted: bool = attrs.field(init=False, default=False)


@attrs.define(eq=False)
class _Tenant:
    # When it appeared, or last got or gave up a slot.
    turn: int
    held_count: int = 0
    waiting: deque[SlotRequest] = attrs.field(factory=deque)
