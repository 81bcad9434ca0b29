import asyncio
import gc
import weakref
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
async def test_keys_added_after_shut_down_are_dropped(
    queue: WorkQueue[str], add: Callable[[WorkQueue[str]], None]
) -> None:
    queue.shut_down()
    add(queue)
    await asyncio.sleep(10)

    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_shut_down_drops_delayed_keys(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    queue.shut_down()
    await asyncio.sleep(2)

    assert len(queue) == 0


async def test_nothing_keeps_a_queue_that_is_shut_down() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 3600)
    queue.shut_down()
    kept = weakref.ref(queue)
    del queue
    gc.collect()

    assert kept() is None


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


async def test_key_readded_before_shut_down_is_handed_out_once_more(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")

    assert await queue.get() == "a"


async def _ends(queue: WorkQueue[str]) -> bool:
    try:
        await queue.get()
    except QueueShutDown:
        return True
    return False
