"""Fair sharing of slots between tenants."""

import asyncio
from collections import Counter

import pytest

from dlctl.controller.fair_semaphore import FairSemaphore

pytestmark = pytest.mark.looptime


async def use(slots: FairSemaphore, tenant: str, seconds: float, log: list[str]) -> None:
    async with slots.slot(tenant):
        log.append(tenant)
        await asyncio.sleep(seconds)


async def test_tenant_alone_leaves_slots_for_newcomers() -> None:
    slots, log = FairSemaphore(64), list[str]()
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
    slots, log = FairSemaphore(2), list[str]()
    async with asyncio.TaskGroup() as group:
        for tenant in ("a", "a", "a", "a", "b", "b", "c"):
            group.create_task(use(slots, tenant, 1, log))
    assert log == ["a", "b", "c", "a", "b", "a", "a"]


async def test_one_slot_serves_all() -> None:
    slots, log = FairSemaphore(1), list[str]()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for tenant in "aab":
            group.create_task(use(slots, tenant, 1, log))
    assert log == ["a", "b", "a"]


async def test_slot_of_a_cancelled_holder_is_released() -> None:
    slots, log = FairSemaphore(2), list[str]()
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


async def test_tenant_without_a_slot_gets_an_extra_one_once_a_few_others_hold_all() -> None:
    slots, log = FairSemaphore(64, extra=2), list[str]()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(7):
            tasks += [group.create_task(use(slots, f"t{number}", 1000, log)) for _ in range(64)]
            await asyncio.sleep(1)
        assert len(log) == 64
        for tenant in ("new", "new", "newer", "late"):
            tasks.append(group.create_task(use(slots, tenant, 1000, log)))
        await asyncio.sleep(1)
        assert log[64:] == ["new", "newer"]
        for task in tasks:
            task.cancel()


async def test_slot_that_is_not_waited_for_is_shared_likewise() -> None:
    slots = FairSemaphore(2, extra=1)
    with slots.slot_now("a") as first, slots.slot_now("a") as second:
        assert (first, second) == (True, False)
        with slots.slot_now("b") as third, slots.slot_now("c") as extra, slots.slot_now("d") as no:
            assert (third, extra, no) == (True, True, False)
    with slots.slot_now("d") as found:
        assert found
