"""The limit of concurrent writes to an API server: adapted to the server, in order of the flows.

Reads are not limited: the controller has few, most of them watches.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from typing import Final, TypeAlias

import attrs

from dlctl.backoff import Backoff
from dlctl.kube.errors import ApiError, ThrottledError, UnreachableError, WriteFencedError
from dlctl.kube.flowcontrol.adaptive_limit import AdaptiveLimit
from dlctl.kube.flowcontrol.priority_semaphore import PrioritySemaphore

# With this many writes in flight, or as many as allowed, each waits for others in the server.
_BUSY: Final = 16
# The first writes of a flow, which it makes in the order of its arrival.
_FIRST_WRITES: Final = 64
# A larger one takes the server as long as several: it counts as one more for each of these.
_BYTES_PER_WRITE: Final = 64 << 10
# Each further write counts as if the flow had arrived this much later.
_DELAY_PER_WRITE_S: Final = 0.05
# Each flow of its namespace that waits delays the arrival of a flow by this much, up to a limit:
# flows of other namespaces do not wait for all of them.
_DELAY_PER_FLOW_S: Final = 0.2
_MAX_DELAY_S: Final = 30.0
# Younger flows write as planned: to plan again would cost more than it saves.
_STALE_S: Final = 0.5
# How long a write waits at least that the server has shed.
_SHED_BACKOFF: Final = Backoff(base_s=0.1, cap_s=1.0)

# True for a write of low priority, and a time on the loop's clock.
_Turn: TypeAlias = tuple[bool, float]


def _never() -> bool:
    return False


@attrs.define(eq=False)
class WriteFlow:
    """The writes of one reconcile.

    Flows are served in order of arrival, so that each finishes early instead of all at the end. A
    large flow falls back with each write, so that later flows do not wait for it.
    """

    # On the loop's clock.
    arrived_at: float
    # Returns whether another reconcile of the same key is due.
    is_superseded: Callable[[], bool] = _never
    namespace: str = ""
    # Seconds until it counts as arrived; set before its first write.
    delay_s: float | None = attrs.field(init=False, default=None)
    waiting_count: int = attrs.field(init=False, default=0)
    _writes: int = attrs.field(init=False, default=0)

    def next_turn(self) -> float:
        """Count a write; return when it counts as arrived."""
        self._writes += 1
        later_writes = max(self._writes - _FIRST_WRITES, 0)
        return self.arrived_at + (self.delay_s or 0.0) + later_writes * _DELAY_PER_WRITE_S

    def add_bytes(self, size: int) -> None:
        """Count the size of the body of a write."""
        self._writes += size // _BYTES_PER_WRITE

    @contextmanager
    def take_turn(self, arrived_at: float | None) -> Iterator[None]:
        """Use this arrival time for the writes of a block; None keeps the flow's own."""
        own = self.arrived_at
        self.arrived_at = own if arrived_at is None else arrived_at
        try:
            yield
        finally:
            self.arrived_at = own

    def is_stale(self) -> bool:
        """Return whether its writes have waited long, and a newer reconcile will replace them."""
        waited_s = asyncio.get_running_loop().time() - self.arrived_at
        return waited_s >= _STALE_S and self.is_superseded()


# The flow of the current task.
write_flow: ContextVar[WriteFlow | None] = ContextVar("write_flow", default=None)


@attrs.define
class _NamespaceFlows:
    """The flows of a namespace that wait, and when the last of them counts as arrived."""

    waiting_count: int = 0
    last_turn: float = float("-inf")


class WriteLimiter:
    """Lets as many writes proceed at the same time as the server takes without congestion.

    The others wait, those of low priority until no others wait; see :class:`WriteFlow`. Flows of a
    namespace in which many wait fall back behind those of other namespaces.
    """

    def __init__(self) -> None:
        self._limit = AdaptiveLimit()
        self._slots: PrioritySemaphore[_Turn] = PrioritySemaphore(self._limit.count)
        # Only namespaces in which flows wait.
        self._namespaces: dict[str, _NamespaceFlows] = {}
        # When the newest of the writes that the server took was sent.
        self._last_taken_at = float("-inf")
        self._taken = asyncio.Event()

    @property
    def limit(self) -> int:
        return self._limit.count

    @property
    def waiting_count(self) -> int:
        return self._slots.waiting_count

    @property
    def is_busy(self) -> bool:
        """Return whether another round trip would take long."""
        return self._slots.held_count >= min(_BUSY, self.limit)

    @asynccontextmanager
    async def slot(
        self, *, is_low_priority: bool = False, takes_long: bool = False
    ) -> AsyncIterator[None]:
        """Hold a slot for one attempt of a write of the current flow.

        The duration of a write that ``takes_long`` says nothing about the server.
        """
        clock = asyncio.get_running_loop().time
        flow = write_flow.get()
        async with AsyncExitStack() as stack:
            with self._waiting(flow) if flow else nullcontext():
                turn = flow.next_turn() if flow else clock()
                await stack.enter_async_context(self._slots.slot((is_low_priority, turn)))
            sent_at = clock()
            try:
                yield
            except WriteFencedError:
                raise
            except (ThrottledError, UnreachableError):
                self._limit.observe_congestion(sent_at, clock())
                raise
            except ApiError:
                self._observe_response(sent_at, clock(), takes_long=takes_long)
                raise
            else:
                self._last_taken_at = max(self._last_taken_at, sent_at)
                # Wakes those who wait now.
                self._taken.set()
                self._taken.clear()
                self._observe_response(sent_at, clock(), takes_long=takes_long)
            finally:
                self._slots.resize(self._limit.count)

    async def pause(self, delay_s: float, attempt: int = 0) -> None:
        """Wait after load shedding: as long as the server asks, or until it takes other writes.

        After a few rejections in a row it asks for up to 32 s, although fewer writes are in flight
        by then: the rejected writes would come last, and their jobs wait for them. One that was
        rejected before waits longer at least; ``attempt`` counts from 0.
        """
        rejected_at = asyncio.get_running_loop().time()
        at_least_s = min(_SHED_BACKOFF.delay_s(attempt + 1), delay_s)
        await asyncio.sleep(at_least_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s - at_least_s):
                while self._last_taken_at <= rejected_at:
                    await self._taken.wait()

    @contextmanager
    def _waiting(self, flow: WriteFlow) -> Iterator[None]:
        """Count the flow as waiting, and set its delay by the others of its namespace.

        Within a namespace, the order of arrival is kept.
        """
        flows = self._namespaces.setdefault(flow.namespace, _NamespaceFlows())
        if flow.delay_s is None:
            delay_s = min(flows.waiting_count * _DELAY_PER_FLOW_S, _MAX_DELAY_S)
            flows.last_turn = max(flows.last_turn, flow.arrived_at + delay_s)
            flow.delay_s = flows.last_turn - flow.arrived_at
        flows.waiting_count += not flow.waiting_count
        flow.waiting_count += 1
        try:
            yield
        finally:
            flow.waiting_count -= 1
            flows.waiting_count -= not flow.waiting_count
            if not flows.waiting_count:
                self._namespaces.pop(flow.namespace, None)

    def _observe_response(self, sent_at: float, now: float, *, takes_long: bool) -> None:
        if not takes_long:
            is_full = self._slots.held_count >= self._limit.count
            self._limit.observe_response(sent_at, now, is_full=is_full)
