import asyncio
from collections.abc import Callable

import pytest

from dlctl.workqueue.queue import QueueShutDown, WorkQueue

pytestmark = pytest.mark.looptime


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_backlog_is_handed_out_after_shut_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.shut_down()

    assert [await queue.get(), await queue.get()] == ["a", "b"]
    with pytest.raises(QueueShutDown):
        await queue.get()


@pytest.mark.parametrize(
    "add",
    [
        pytest.param(lambda queue: queue.add("a"), id="add"),
        pytest.param(lambda queue: queue.add_after("a", 0), id="at once"),
        pytest.param(lambda queue: queue.add_after("a", 1), id="later"),
        pytest.param(lambda queue: queue.add_rate_limited("a"), id="rate limited"),
    ],
)
async def test_nothing_added_after_shut_down_comes_out(
    queue: WorkQueue[str], add: Callable[[WorkQueue[str]], None]
) -> None:
    queue.shut_down()
    add(queue)
    await asyncio.sleep(10)

    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_shut_down_drops_keys_whose_time_has_not_come(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    queue.shut_down()
    await asyncio.sleep(2)

    assert len(queue) == 0


async def test_shut_down_releases_every_waiting_worker(queue: WorkQueue[str]) -> None:
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(_ends(queue)) for _ in range(3)]
        await turns()
        queue.shut_down()

    assert all(worker.result() for worker in workers)


async def test_shut_down_does_not_wait_for_work_in_progress(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()

    queue.shut_down()

    with pytest.raises(QueueShutDown):
        await queue.get()
    queue.done("a")


async def test_key_asked_for_before_shut_down_comes_once_more_after_done(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")

    assert await queue.get() == "a"


async def test_drain_returns_when_all_work_is_done(queue: WorkQueue[str]) -> None:
    for key in "ab":
        queue.add(key)
        await queue.get()
    async with asyncio.TaskGroup() as group:
        drain = group.create_task(queue.drain())
        await turns()
        queue.done("a")
        await turns()
        assert not drain.done()

        queue.done("b")


async def test_drain_waits_for_a_key_that_comes_back(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        drain = group.create_task(queue.drain())
        await turns()
        queue.done("a")
        await turns()
        assert not drain.done()

        assert await queue.get() == "a"
        queue.done("a")


async def test_drain_returns_at_once_if_nobody_works(queue: WorkQueue[str]) -> None:
    queue.add("a")

    await queue.drain()

    assert len(queue) == 1


async def test_drain_refuses_new_keys(queue: WorkQueue[str]) -> None:
    await queue.drain()
    queue.add("a")

    assert len(queue) == 0


async def test_shut_down_releases_a_drain_that_hangs(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    async with asyncio.TaskGroup() as group:
        drain = group.create_task(queue.drain())
        await turns()
        assert not drain.done()

        queue.shut_down()


async def test_drain_after_shut_down_still_waits_for_work(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.shut_down()
    async with asyncio.TaskGroup() as group:
        drain = group.create_task(queue.drain())
        await turns()
        assert not drain.done()

        queue.done("a")


async def test_cancelled_drain_leaves_the_queue_shut_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await queue.drain()
    queue.done("a")

    with pytest.raises(QueueShutDown):
        await queue.get()


async def _ends(queue: WorkQueue[str]) -> bool:
    try:
        await queue.get()
    except QueueShutDown:
        return True
    return False
