import asyncio

import pytest

from dlctl.tasks import map_all, run_to_end

pytestmark = pytest.mark.looptime


class BrokenError(Exception):
    pass


async def test_results_are_in_the_order_of_the_items() -> None:
    async def late(delay_s: int) -> int:
        await asyncio.sleep(delay_s)
        return delay_s

    assert await map_all(late, [3, 1, 2], limit=3) == [3, 1, 2]


async def test_concurrency_is_limited() -> None:
    running, most = 0, 0

    async def run(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    await map_all(run, range(10), limit=3)
    assert most == 3


async def test_many_items_take_no_more_tasks_than_the_limit() -> None:
    most = 0

    async def run(_: int) -> None:
        nonlocal most
        await asyncio.sleep(1)
        most = max(most, len(asyncio.all_tasks()))

    await map_all(run, range(1000), limit=3)
    # The test is one, too.
    assert most == 4


async def test_first_failure_is_raised_unwrapped_and_cancels_the_others() -> None:
    ended = []

    async def run(item: int) -> None:
        if item == 1:
            await asyncio.sleep(1)
            raise BrokenError
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(item)

    with pytest.raises(BrokenError):
        await map_all(run, [0, 1, 2], limit=3)
    assert ended == [0, 2]


async def test_cancellation_beats_a_simultaneous_failure() -> None:
    failing = asyncio.Event()

    async def run(_: int) -> None:
        try:
            await asyncio.sleep(10)
        finally:
            failing.set()
            raise BrokenError

    task = asyncio.create_task(map_all(run, [0], limit=1))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert failing.is_set()


async def test_cancellation_during_the_cleanup_of_a_failure_is_not_lost() -> None:
    async def run(item: int) -> None:
        if item == 0:
            await asyncio.sleep(1)
            raise BrokenError
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(5)

    task = asyncio.create_task(map_all(run, [0, 1], limit=2))
    await asyncio.sleep(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_failure_leaves_no_cancellation_behind() -> None:
    async def run(_: int) -> None:
        await asyncio.sleep(1)
        raise BrokenError

    with pytest.raises(BrokenError):
        await map_all(run, [0, 1], limit=2)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_cancellation_of_one_call_by_itself_is_raised() -> None:
    async def run(item: int) -> int:
        if item == 1:
            raise asyncio.CancelledError
        return item

    with pytest.raises(asyncio.CancelledError):
        await map_all(run, range(4), limit=2)


async def test_cancellation_waits_for_the_end_of_what_must_not_be_interrupted() -> None:
    finish, ended = asyncio.Event(), False

    async def write() -> None:
        nonlocal ended
        await finish.wait()
        ended = True
        raise ValueError

    call = asyncio.create_task(run_to_end(write()))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.sleep(0)
    assert not call.done()

    finish.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended


async def test_second_cancellation_waits_for_nothing() -> None:
    cancelled = False

    async def write() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    call = asyncio.create_task(run_to_end(write()))
    for _ in range(2):
        await asyncio.sleep(0)
        call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(0)
    assert cancelled
