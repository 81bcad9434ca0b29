"""Fair sharing of slots between tenants."""

import asyncio
import contextlib
from collections import Counter
from functools import partial

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


async def test_of_equal_tenants_the_one_whose_last_slot_is_older_is_next() -> None:
    slots, log = FairSemaphore(7), list[str]()
    first = slots.request("c", log.clear)
    for tenant in "abba":
        assert slots.request(tenant, log.clear).is_granted
    for tenant in "ab":
        assert not slots.request(tenant, partial(log.append, tenant)).is_granted
    slots.end(first)
    assert log == ["b"]


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


async def test_tenants_that_come_and_go_do_not_overtake_one_that_waits() -> None:
    slots, log = FairSemaphore(1), list[str]()

    async def come_and_go(tenant: str) -> None:
        for _ in range(20):
            await use(slots, tenant, 1, log)

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(use(slots, "waits", 1, log))
        for tenant in ("b", "c"):
            group.create_task(come_and_go(tenant))
    assert log[:30].count("waits") == 10


async def test_request_is_told_once_it_has_a_slot_and_keeps_its_place() -> None:
    slots, log = FairSemaphore(1), list[str]()
    first = slots.request("a", lambda: log.append("first"))
    second = slots.request("a", lambda: log.append("second"))
    third = slots.request("a", lambda: log.append("third"))
    assert (first.is_granted, second.is_granted, log) == (True, False, [])
    slots.end(first)
    assert (second.is_granted, log) == (True, ["second"])
    slots.end(third)
    slots.end(second)
    assert log == ["second"]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1), slots.slot("b"):
            log.append("b")
    assert log == ["second", "b"]
