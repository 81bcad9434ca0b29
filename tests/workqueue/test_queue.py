import asyncio
import gc
import weakref
from collections import Counter

import pytest

from dlctl.workqueue.queue import QueueShutDown, WorkQueue

# Every wait ends at once in simulated loop time; a hanging test fails by its timeout.
pytestmark = pytest.mark.looptime


class Key:
    """A key that can be weakly referenced."""


async def ready(queue: WorkQueue[str]) -> list[str]:
    return [await queue.get() for _ in range(len(queue))]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_keys_come_in_order_of_arrival(queue: WorkQueue[str]) -> None:
    for key in "abc":
        queue.add(key)

    assert await ready(queue) == ["a", "b", "c"]


async def test_key_added_twice_is_handed_out_once(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a")

    assert len(queue) == 1
    assert await ready(queue) == ["a"]


async def test_key_added_again_keeps_its_place(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.add("a")

    assert await ready(queue) == ["a", "b"]


async def test_key_added_while_processing_waits_until_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0

    queue.done("a")

    assert await ready(queue) == ["a"]
    queue.done("a")
    assert len(queue) == 0


async def test_readded_key_goes_behind_the_others(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.done("a")

    assert await ready(queue) == ["b", "a"]


async def test_second_worker_waits_for_key_until_the_first_is_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        second = group.create_task(queue.get())
        await turns()
        assert not second.done()

        queue.done("a")

    assert second.result() == "a"


async def test_key_being_processed_does_not_block_others(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=9)
    await queue.get()
    queue.add("a", priority=9)
    queue.add("b")

    assert await queue.get() == "b"


async def test_done_without_get_raises(queue: WorkQueue[str]) -> None:
    queue.add("a")

    with pytest.raises(ValueError, match="no worker has taken a"):
        queue.done("a")


async def test_each_key_is_handed_to_exactly_one_of_many_workers(queue: WorkQueue[str]) -> None:
    taken = Counter[str]()

    async def work() -> None:
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            taken[key] += 1
            await asyncio.sleep(0)
            queue.done(key)

    async def produce(number: int) -> None:
        for index in range(20):
            queue.add(f"{number}-{index}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(work())
        async with asyncio.TaskGroup() as producers:
            for number in range(50):
                producers.create_task(produce(number))
        queue.shut_down()
        queue.add("too late")

    assert taken == {f"{n}-{i}": 1 for n in range(50) for i in range(20)}


async def test_queue_holds_no_reference_to_a_finished_key() -> None:
    queue = WorkQueue[Key]()
    key = Key()
    gone = weakref.ref(key)
    queue.add(key, priority=-1)
    queue.add(key)
    await queue.get()
    queue.done(key)

    del key
    gc.collect()

    assert gone() is None


async def test_higher_priority_goes_first(queue: WorkQueue[str]) -> None:
    queue.add("low", priority=-100)
    queue.add("first")
    queue.add("second")
    queue.add("high", priority=10)

    assert await ready(queue) == ["high", "first", "second", "low"]


async def test_key_with_raised_priority_goes_to_the_end_of_its_new_level(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    queue.add("b", priority=1)
    queue.add("c", priority=1)

    queue.add("a", priority=1)

    assert len(queue) == 3
    assert await ready(queue) == ["b", "c", "a"]


async def test_priority_is_never_lowered(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=1)
    queue.add("b")
    queue.add("a", priority=-100)

    assert await ready(queue) == ["a", "b"]


async def test_highest_priority_added_while_processing_counts(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    for priority in (1, 5, 3):
        queue.add("a", priority=priority)
    queue.add("b", priority=4)
    queue.done("a")

    assert await ready(queue) == ["a", "b"]


async def test_tenants_take_turns() -> None:
    queue: WorkQueue[str] = WorkQueue(tenant_of=lambda key: key[0])
    for key in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queue.add(key)

    assert await ready(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    queue.add("c2")
    assert await ready(queue) == ["c2"]


async def test_tenant_without_keys_takes_no_turn() -> None:
    queue: WorkQueue[str] = WorkQueue(tenant_of=lambda key: key[0])
    for key in ("a1", "b1", "b2"):
        queue.add(key)
    queue.add("a1", priority=1)

    assert await ready(queue) == ["a1", "b1", "b2"]
    queue.add("a2")
    assert await ready(queue) == ["a2"]


async def test_higher_priority_of_one_tenant_goes_before_the_turn_of_another() -> None:
    queue: WorkQueue[str] = WorkQueue(tenant_of=lambda key: key[0])
    queue.add("a1")
    for key in ("b1", "b2"):
        queue.add(key, priority=1)

    assert await ready(queue) == ["b1", "b2", "a1"]


async def test_waiting_worker_gets_a_key_that_is_added_later(queue: WorkQueue[str]) -> None:
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.get())
        await turns()
        queue.add("a")

    assert worker.result() == "a"


async def test_cancelled_worker_passes_on_its_wake_up(queue: WorkQueue[str]) -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(queue.get())
        second = group.create_task(queue.get())
        await turns()
        # The first worker is woken and cancelled in one loop iteration, so it takes no key.
        queue.add("a")
        first.cancel()

    assert first.cancelled()
    assert second.result() == "a"


async def test_worker_cancelled_while_waiting_takes_no_wake_up(queue: WorkQueue[str]) -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(queue.get())
        second = group.create_task(queue.get())
        await turns()
        first.cancel()
        await turns()
        queue.add("a")

    assert second.result() == "a"


async def test_worker_whose_key_was_taken_by_another_waits_on(queue: WorkQueue[str]) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(queue.get())
        await turns()
        queue.add("a")
        assert await queue.get() == "a"
        await turns()
        assert not waiting.done()
        queue.add("b")

    assert waiting.result() == "b"


async def test_key_in_processing_is_queued_if_it_was_added_at_no_lower_priority() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert queue.is_queued("a")
    await queue.get()
    assert not queue.is_queued("a")
    queue.add("a", priority=-100)
    assert not queue.is_queued("a")
    queue.add("a")
    assert queue.is_queued("a")
