"""Writes in flight: fair between jobs, by priority, adapted to a server."""

import asyncio
from collections.abc import Awaitable, Callable

import attrs
import pytest

from dlctl.kube.errors import (
    ConflictError,
    DisconnectedError,
    ThrottledError,
    WriteFencedError,
)
from dlctl.kube.write_limiter import Priority, WriteLimiter, write_flow

pytestmark = pytest.mark.looptime
# More than are in flight at first.
MANY = 200


@attrs.define
class Server:
    """Serves a number of writes per second, and rejects what exceeds a number at once."""

    per_second: float = 1000.0
    max_in_flight: int = 10_000
    served: int = 0
    rejected: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    _free_at: float = 0.0

    async def write(self) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.in_flight > self.max_in_flight:
                await asyncio.sleep(0.001)
                self.rejected += 1
                raise ThrottledError("later", code=429, reason="", retry_after_s=1.0)
            now = asyncio.get_running_loop().time()
            self._free_at = max(now, self._free_at) + 1 / self.per_second
            await asyncio.sleep(self._free_at - now)
            self.served += 1
        finally:
            self.in_flight -= 1


async def write(
    limiter: WriteLimiter,
    do: Callable[[], Awaitable[None]],
    flow: str,
    log: list[str],
    priority: Priority = Priority.OBJECTS,
) -> None:
    """Write until it succeeds, as the transport does."""
    write_flow.set(flow)
    while True:
        try:
            async with limiter.slot(priority):
                await do()
        except ThrottledError as error:
            await asyncio.sleep(error.retry_after_s)
        else:
            log.append(flow)
            return


async def test_small_job_does_not_wait_for_a_large_one() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=100), list[str]()
    async with asyncio.TaskGroup() as group:
        for _ in range(5000):
            group.create_task(write(limiter, server.write, "large", log))
        await asyncio.sleep(5)
        started = asyncio.get_running_loop().time()
        small = [group.create_task(write(limiter, server.write, "small", log)) for _ in range(4)]
        await asyncio.wait(small)
        took_s = asyncio.get_running_loop().time() - started
    # What is in flight is served first, which no client can change.
    assert took_s < 2 * server.most_in_flight / server.per_second
    assert log.count("large") == 5000


async def test_status_goes_before_objects_and_events_go_last() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=100), list[str]()
    async with asyncio.TaskGroup() as group:
        for n in range(MANY):
            group.create_task(write(limiter, server.write, f"filler {n}", log))
        await asyncio.sleep(0.01)
        for priority in (Priority.EVENTS, Priority.OBJECTS, Priority.STATUS):
            group.create_task(write(limiter, server.write, priority.name, log, priority))
    assert log.index("STATUS") < log.index("OBJECTS") < log.index("EVENTS")
    assert log[-1] == "EVENTS"


async def test_overloaded_server_works_at_its_limit_without_a_storm() -> None:
    """Priority and fairness: what exceeds its seats and its queue is rejected with 429."""
    limiter, server, log = WriteLimiter(), Server(per_second=50, max_in_flight=20), list[str]()
    started = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for n in range(3000):
            group.create_task(write(limiter, server.write, str(n % 50), log))
    took_s = asyncio.get_running_loop().time() - started
    assert server.served / took_s >= 0.9 * server.per_second
    assert server.rejected < 0.1 * server.served


async def test_fast_server_gets_more_at_the_same_time() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=2000), list[str]()
    before = limiter.limit
    async with asyncio.TaskGroup() as group:
        for n in range(20_000):
            group.create_task(write(limiter, server.write, str(n % 9), log))
    assert limiter.limit > 2 * before


@pytest.mark.parametrize(
    ("error", "is_congestion"),
    [
        (ThrottledError("later", code=429, reason="", retry_after_s=1), True),
        (DisconnectedError("reset"), True),
        (ConflictError("changed", code=409, reason="Conflict"), False),
        (WriteFencedError("not the leader"), False),
        (ValueError("a body that cannot be rendered"), False),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_overload_lowers_the_limit_and_other_errors_do_not(
    error: Exception, is_congestion: bool
) -> None:
    limiter = WriteLimiter()
    before = limiter.limit
    with pytest.raises(type(error)):
        async with limiter.slot(Priority.OBJECTS):
            raise error
    assert (limiter.limit < before) is is_congestion
    assert limiter.waiting_count == 0
