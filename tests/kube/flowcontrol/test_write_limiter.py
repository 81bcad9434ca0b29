"""Writes in flight: fair between jobs, by priority, adapted to a server."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress

import attrs
import pytest

from dlctl.kube.errors import (
    ApiError,
    ConflictError,
    DisconnectedError,
    ThrottledError,
    WriteFencedError,
)
from dlctl.kube.flowcontrol.write_limiter import WriteFlow, WriteLimiter, write_flow
from dlctl.tasks import map_all

pytestmark = pytest.mark.looptime
# More than are in flight at first.
MANY = 200


@attrs.define
class Server:
    """Serves a number of writes per second, and rejects what exceeds a number at once."""

    per_second: float = 1000.0
    max_in_flight: int = 10_000
    retry_after_s: float = 1.0
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
                raise ThrottledError("later", code=429, reason="", retry_after_s=self.retry_after_s)
            now = asyncio.get_running_loop().time()
            self._free_at = max(now, self._free_at) + 1 / self.per_second
            await asyncio.sleep(self._free_at - now)
            self.served += 1
        finally:
            self.in_flight -= 1


async def write(
    limiter: WriteLimiter,
    do: Callable[[], Awaitable[None]],
    flow: tuple[str, WriteFlow],
    log: list[str],
    *,
    is_low_priority: bool = False,
) -> None:
    """Write until it succeeds, as the transport does."""
    name, current = flow
    write_flow.set(current)
    for attempt in itertools.count():
        try:
            async with limiter.slot(is_low_priority=is_low_priority):
                await do()
        except ThrottledError as error:
            await limiter.pause(error.retry_after_s, attempt)
        else:
            log.append(name)
            return


async def write_many(
    limiter: WriteLimiter,
    server: Server,
    flow: tuple[str, WriteFlow],
    count: int,
    log: list[str],
    *,
    at_a_time: int = 32,
) -> None:
    """Write as a reconcile does that creates children."""

    async def one(_: int) -> None:
        await write(limiter, server.write, flow, log)

    await map_all(one, range(count), limit=at_a_time)


def flow(name: str) -> tuple[str, WriteFlow]:
    return name, WriteFlow(asyncio.get_running_loop().time())


async def test_small_job_does_not_wait_for_a_large_one() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=100), list[str]()
    async with asyncio.TaskGroup() as group:
        large = flow("large")
        group.create_task(write_many(limiter, server, large, 5000, log))
        await asyncio.sleep(5)
        started = asyncio.get_running_loop().time()
        await write_many(limiter, server, flow("small"), 12, log)
        took_s = asyncio.get_running_loop().time() - started
    # What is in flight is served first, which no client can change.
    assert took_s < 2 * server.most_in_flight / server.per_second
    assert log.count("large") == 5000


@pytest.mark.parametrize(("size", "is_overtaken"), [(1_300_000, True), (10_000, False)])
async def test_few_large_writes_count_as_many(size: int, *, is_overtaken: bool) -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=10), list[str]()
    name, large = flow("large")

    async def write_large(_: int) -> None:
        async def send() -> None:
            large.add_bytes(size)
            await server.write()

        await write(limiter, send, (name, large), log)

    async with asyncio.TaskGroup() as group:
        group.create_task(map_all(write_large, range(60), limit=60))
        await asyncio.sleep(1)
        await write_many(limiter, server, flow("small"), 12, log)
        assert (log.count(name) < 60) == is_overtaken


async def test_large_job_proceeds_however_many_small_ones_arrive() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=100), list[str]()
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        large = group.create_task(write_many(limiter, server, flow("large"), 1000, log))
        while not large.done():
            # All that the server takes, and a little more.
            group.create_task(write_many(limiter, server, flow("small"), 11, log))
            await asyncio.sleep(0.1)


async def test_jobs_are_finished_in_the_order_of_their_arrival() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=100), list[str]()
    async with asyncio.TaskGroup() as group:
        for number in range(100):
            # One write after the other, as when one stage of a job needs the last one.
            current = flow(f"{number:02}")
            group.create_task(write_many(limiter, server, current, 20, log, at_a_time=1))
            await asyncio.sleep(0.001)
    last = [len(log) - log[::-1].index(f"{number:02}") for number in range(100)]
    ahead = [end for number, end in enumerate(last) if any(e < end for e in last[number + 32 :])]
    assert not ahead


async def test_events_have_low_priority() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=100), list[str]()
    async with asyncio.TaskGroup() as group:
        for n in range(MANY):
            group.create_task(write(limiter, server.write, flow(f"filler {n}"), log))
        await asyncio.sleep(0.01)
        group.create_task(write(limiter, server.write, flow("event"), log, is_low_priority=True))
        group.create_task(write(limiter, server.write, flow("object"), log))
    assert log[-2:] == ["object", "event"]


@pytest.mark.parametrize("retry_after_s", [1.0, 32.0])
async def test_overloaded_server_works_at_its_limit_without_a_storm(retry_after_s: float) -> None:
    """Priority and fairness: what exceeds its seats and its queue is rejected with 429."""
    limiter, log = WriteLimiter(), list[str]()
    server = Server(per_second=50, max_in_flight=20, retry_after_s=retry_after_s)
    started = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for n in range(50):
            group.create_task(write_many(limiter, server, flow(str(n)), 20, log))
    took_s = asyncio.get_running_loop().time() - started
    assert server.served / took_s >= 0.9 * server.per_second
    assert server.rejected < 0.1 * server.served


async def test_write_that_is_rejected_time_and_again_is_sent_ever_less_often() -> None:
    limiter, server, log = WriteLimiter(), Server(), list[str]()
    tries = list[float]()

    async def reject() -> None:
        tries.append(asyncio.get_running_loop().time())
        raise ThrottledError("later", code=429, reason="", retry_after_s=1)

    async def others() -> None:
        while True:
            await write(limiter, server.write, flow("other"), log)

    async with asyncio.TaskGroup() as group:
        busy = group.create_task(others())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(8):
                await write(limiter, reject, flow("rejected"), log)
        busy.cancel()
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert pauses[:5] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0], abs=0.02)
    assert len(tries) < 12


async def test_server_that_takes_nothing_is_left_alone_as_long_as_it_asks() -> None:
    limiter, server, log = WriteLimiter(), Server(max_in_flight=0, retry_after_s=10), list[str]()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(25):
            await write_many(limiter, server, flow("rejected"), 30, log)
    assert server.rejected == 3 * 30


@pytest.mark.parametrize(
    ("error", "lasted_s"),
    [
        (None, 1.5),
        (ApiError("a proxy's", code=502, reason=""), 10.0),
        (DisconnectedError(""), 10.0),
    ],
    ids=["success", "error of a proxy", "no response"],
)
async def test_pause_ends_early_once_the_server_has_taken_a_write(
    error: Exception | None, lasted_s: float
) -> None:
    limiter, clock = WriteLimiter(), asyncio.get_running_loop().time
    started = clock()
    async with asyncio.TaskGroup() as group:
        pausing = group.create_task(limiter.pause(10.0))
        await asyncio.sleep(1.5)
        with suppress(ApiError, DisconnectedError):
            async with limiter.slot():
                if error:
                    raise error
        await pausing
        assert clock() - started == pytest.approx(lasted_s)


async def test_fast_server_gets_more_at_the_same_time() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=2000), list[str]()
    before = limiter.limit
    async with asyncio.TaskGroup() as group:
        for n in range(9):
            group.create_task(write_many(limiter, server, flow(str(n)), 2000, log))
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
        async with limiter.slot():
            raise error
    assert (limiter.limit < before) is is_congestion
    assert limiter.waiting_count == 0


@pytest.mark.parametrize("takes_long", [False, True])
@pytest.mark.parametrize("is_rejected", [False, True])
async def test_only_a_write_that_should_be_fast_shows_congestion(
    takes_long: bool, is_rejected: bool
) -> None:
    limiter = WriteLimiter()
    before = limiter.limit
    for duration_s in (0.01, 5.0):
        with suppress(ConflictError):
            async with limiter.slot(takes_long=takes_long):
                await asyncio.sleep(duration_s)
                if is_rejected:
                    raise ConflictError("changed", code=409, reason="Conflict")
    assert (limiter.limit == before) is takes_long


async def test_flow_is_stale_once_it_has_waited_and_its_key_is_due_again() -> None:
    due = False
    waiting = WriteFlow(asyncio.get_running_loop().time(), lambda: due)
    due = True
    assert not waiting.is_stale()
    await asyncio.sleep(1)
    assert waiting.is_stale()
    due = False
    assert not waiting.is_stale()


async def test_turn_of_an_earlier_flow_is_for_one_block() -> None:
    flow = WriteFlow(10.0)
    with flow.take_turn(3.0):
        assert flow.next_turn() == 3.0
    assert flow.next_turn() == 10.0
    with flow.take_turn(None):
        assert flow.next_turn() == 10.0


async def test_flows_of_one_namespace_do_not_delay_those_of_another() -> None:
    limiter, server, log = WriteLimiter(), Server(per_second=50), list[str]()

    def flow(name: str, namespace: str) -> tuple[str, WriteFlow]:
        return name, WriteFlow(asyncio.get_running_loop().time(), namespace=namespace)

    async with asyncio.TaskGroup() as group:
        for number in range(MANY):
            group.create_task(write(limiter, server.write, flow(f"busy-{number}", "busy"), log))
        await asyncio.sleep(1)
        group.create_task(write(limiter, server.write, flow("quiet", "quiet"), log))
    assert log.index("quiet") < MANY / 2
    log.remove("quiet")
    assert log == [f"busy-{number}" for number in range(MANY)]
