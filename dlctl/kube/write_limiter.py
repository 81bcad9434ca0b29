"""The limit of concurrent writes to an API server: adapted to the server, shared fairly by flow.

Reads are not limited: the controller has few, most of them watches.
"""

import asyncio
import enum
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar

from dlctl.fair_semaphore import FairSemaphore
from dlctl.kube.adaptive_limit import AdaptiveLimit
from dlctl.kube.errors import ApiError, ThrottledError, UnreachableError, WriteFencedError

# For whom the current task writes, such as the key of a job.
write_flow: ContextVar[Hashable] = ContextVar("write_flow", default=None)


class Priority(enum.IntEnum):
    """Which writes go first while others wait."""

    STATUS = 0
    OBJECTS = 1
    EVENTS = 2


class WriteLimiter:
    """Lets as many writes proceed at the same time as the server takes without congestion.

    Flows take turns, and the flow with the fewest writes in progress is next: a small job does not
    wait for a large one.
    """

    def __init__(self) -> None:
        self._limit = AdaptiveLimit()
        self._slots = FairSemaphore(self._limit.count)

    @property
    def limit(self) -> int:
        return self._limit.count

    @property
    def waiting_count(self) -> int:
        return self._slots.waiting_count

    @asynccontextmanager
    async def slot(self, priority: Priority) -> AsyncIterator[None]:
        """Hold a slot for one attempt of a write of the current flow."""
        async with self._slots.slot(write_flow.get(), priority):
            clock = asyncio.get_running_loop().time
            sent_at = clock()
            try:
                yield
            except WriteFencedError:
                raise
            except (ThrottledError, UnreachableError):
                self._limit.observe_congestion(sent_at, clock())
                raise
            except ApiError:
                self._observe_response(sent_at, clock())
                raise
            else:
                self._observe_response(sent_at, clock())
            finally:
                self._slots.resize(self._limit.count)

    def _observe_response(self, sent_at: float, now: float) -> None:
        is_full = self._slots.held_count >= self._limit.count
        self._limit.observe_response(sent_at, now, is_full=is_full)
