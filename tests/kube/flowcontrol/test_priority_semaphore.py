"""Slots in the order of keys."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.kube.flowcontrol.priority_semaphore import PrioritySemaphore

pytestmark = pytest.mark.looptime


async def use(slots: PrioritySemaphore[int], key: int, seconds: float, log: list[int]) -> None:
    async with slots.slot(key):
        log.append(key)
        await asyncio.sleep(seconds)


async def test_lowest_key_is_next() -> None:
    slots, log = PrioritySemaphore[int](1), list[int]()
    async with asyncio.TaskGroup() as group:
        for key in (9, 3, 1, 2, 1):
            group.create_task(use(slots, key, 1, log))
    assert log == [9, 1, 1, 2, 3]


async def test_slot_granted_during_a_cancellation_is_not_lost() -> None:
    slots, log = PrioritySemaphore[int](1), list[int]()
    async with asyncio.timeout(100), asyncio.TaskGroup() as group:
        first = group.create_task(use(slots, 1, 1, log))
        second = group.create_task(use(slots, 2, 1, log))
        first.add_done_callback(lambda task: second.cancel())
        await asyncio.sleep(5)
        await group.create_task(use(slots, 3, 1, log))
    assert log[-1] == 3


async def test_number_of_slots_changes_while_they_are_used() -> None:
    slots, log = PrioritySemaphore[int](4), list[int]()
    async with asyncio.TaskGroup() as group:
        for key in range(12):
            group.create_task(use(slots, key, 2, log))
        await asyncio.sleep(1)
        slots.resize(1)
        await asyncio.sleep(2)
        assert (len(log), slots.held_count) == (5, 1)
        slots.resize(5)
        assert slots.held_count == 5
    assert log == list(range(12))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.booleans()), max_size=40),
    st.lists(st.integers(1, 5), max_size=5),
)
async def test_slots_are_neither_lost_nor_granted_twice(
    users: list[tuple[int, int, bool]], sizes: list[int]
) -> None:
    """Whatever is cancelled and resized, all who are not cancelled get their turn."""
    slots, log = PrioritySemaphore[int](3), list[int]()
    async with asyncio.timeout(1000), asyncio.TaskGroup() as group:
        for key, seconds, cancelled in users:
            task = group.create_task(use(slots, key, seconds, log))
            if cancelled:
                group.create_task(cancel_after(task, seconds / 2 + key))
        for size in sizes:
            await asyncio.sleep(1)
            slots.resize(size)
            assert slots.held_count <= max(3, *sizes)
    assert (slots.held_count, slots.waiting_count) == (0, 0)
    async with asyncio.timeout(1):
        await use(slots, 0, 0, log)
    assert len(log) > sum(not cancelled for *_, cancelled in users)


async def cancel_after(task: "asyncio.Task[None]", seconds: float) -> None:
    await asyncio.sleep(seconds)
    task.cancel()
