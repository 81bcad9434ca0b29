"""Fair sharing of slots between tenants."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.fair_semaphore import FairSemaphore

pytestmark = pytest.mark.looptime


async def use(
    slots: FairSemaphore, tenant: str, seconds: float, log: list[str], priority: int = 0
) -> None:
    async with slots.slot(tenant, priority):
        log.append(tenant)
        await asyncio.sleep(seconds)


async def test_tenant_alone_leaves_slots_for_newcomers() -> None:
    slots, log = FairSemaphore(64, leave_free=True), list[str]()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(use(slots, "greedy", 1000, log)) for _ in range(200)]
        await asyncio.sleep(1)
        assert log == ["greedy"] * 32
        tasks += [group.create_task(use(slots, f"t{n}", 1000, log)) for n in range(20)]
        await asyncio.sleep(1)
        assert Counter(log) == {"greedy": 32, **{f"t{n}": 1 for n in range(20)}}
        for task in tasks:
            task.cancel()


async def test_waiting_tenants_take_turns() -> None:
    slots, log = FairSemaphore(2, leave_free=True), list[str]()
    async with asyncio.TaskGroup() as group:
        for tenant in ("a", "a", "a", "a", "b", "b", "c"):
            group.create_task(use(slots, tenant, 1, log))
    assert log == ["a", "b", "c", "a", "b", "a", "a"]


async def test_one_slot_serves_all() -> None:
    slots, log = FairSemaphore(1, leave_free=True), list[str]()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for tenant in "aab":
            group.create_task(use(slots, tenant, 1, log))
    assert log == ["a", "b", "a"]


async def test_slot_of_a_cancelled_holder_is_released() -> None:
    slots, log = FairSemaphore(2, leave_free=True), list[str]()
    async with asyncio.timeout(100), asyncio.TaskGroup() as group:
        first = group.create_task(use(slots, "a", 1000, log))
        waiting = group.create_task(use(slots, "a", 1000, log))
        await asyncio.sleep(1)
        waiting.cancel()
        last = group.create_task(use(slots, "a", 1, log))
        await asyncio.sleep(1)
        first.cancel()
        await last
    assert log == ["a", "a"]


async def test_slot_granted_during_a_cancellation_is_not_lost() -> None:
    slots, log = FairSemaphore(1), list[str]()
    async with asyncio.timeout(100), asyncio.TaskGroup() as group:
        first = group.create_task(use(slots, "a", 1, log))
        second = group.create_task(use(slots, "b", 1, log))
        first.add_done_callback(lambda task: second.cancel())
        await asyncio.sleep(5)
        await group.create_task(use(slots, "c", 1, log))
    assert log[-1] == "c"


async def test_tenant_alone_gets_all_slots_unless_some_are_kept_free() -> None:
    slots, log = FairSemaphore(64), list[str]()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(use(slots, "greedy", 1000, log)) for _ in range(200)]
        await asyncio.sleep(1)
        assert (slots.held_count, slots.waiting_count) == (64, 136)
        for task in tasks:
            task.cancel()
    assert (slots.held_count, slots.waiting_count) == (0, 0)


async def test_newcomer_gets_the_next_slot() -> None:
    slots, log = FairSemaphore(4), list[str]()
    async with asyncio.TaskGroup() as group:
        for second in range(100):
            group.create_task(use(slots, "large", 1 + second % 4, log))
        await asyncio.sleep(0.5)
        group.create_task(use(slots, "small", 1, log))
    assert log.index("small") == 4


async def test_lower_numbers_of_priority_go_first() -> None:
    slots, log = FairSemaphore(1), list[str]()
    async with asyncio.TaskGroup() as group:
        for tenant, priority in (("a", 1), ("event", 2), ("b", 1), ("status", 0), ("a", 1)):
            group.create_task(use(slots, tenant, 1, log, priority))
    assert log == ["a", "status", "b", "a", "event"]


async def test_number_of_slots_changes_while_they_are_used() -> None:
    slots, log = FairSemaphore(4), list[str]()
    async with asyncio.TaskGroup() as group:
        for tenant in range(12):
            group.create_task(use(slots, str(tenant), 2, log))
        await asyncio.sleep(1)
        slots.resize(1)
        await asyncio.sleep(2)
        assert (len(log), slots.held_count) == (5, 1)
        slots.resize(5)
        assert slots.held_count == 5
    assert sorted(log, key=int) == log == [str(n) for n in range(12)]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 3), st.booleans()),
        max_size=40,
    ),
    st.lists(st.integers(1, 5), max_size=5),
    st.booleans(),
)
async def test_slots_are_neither_lost_nor_granted_twice(
    users: list[tuple[int, int, int, bool]], sizes: list[int], leave_free: bool
) -> None:
    """Whatever is cancelled and resized, all who are not cancelled get their turn."""
    slots, log = FairSemaphore(3, leave_free=leave_free), list[str]()
    async with asyncio.timeout(1000), asyncio.TaskGroup() as group:
        for tenant, priority, seconds, cancelled in users:
            task = group.create_task(use(slots, str(tenant), seconds, log, priority))
            if cancelled:
                group.create_task(cancel_after(task, seconds / 2 + tenant))
        for size in sizes:
            await asyncio.sleep(1)
            slots.resize(size)
            assert slots.held_count <= max(3, *sizes)
    assert (slots.held_count, slots.waiting_count) == (0, 0)
    async with asyncio.timeout(1):
        await use(slots, "last", 0, log)
    assert len(log) > sum(not cancelled for *_, cancelled in users)


async def cancel_after(task: "asyncio.Task[None]", seconds: float) -> None:
    await asyncio.sleep(seconds)
    task.cancel()
