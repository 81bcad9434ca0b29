"""Reconciles of large jobs take turns."""

import asyncio

import pytest

from dlctl.api.meta import ObjectKey
from dlctl.controller.controller import Controller, Result
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.metrics import Metrics
from dlctl.reconcilers.large_jobs.slots import LargeJobSlots
from dlctl.workqueue.queue import WorkQueue


def test_large_jobs_have_slots_in_order_and_small_ones_need_none() -> None:
    woken = list[str]()
    slots = LargeJobSlots(FairSemaphore(2), lambda key: woken.append(key.name))

    def may_go_on(name: str, *, is_large: bool = True) -> bool:
        with slots.slot_if(ObjectKey("ml", name), is_large=is_large) as yielded:
            return yielded

    with slots.slot_if(ObjectKey("ml", "first"), is_large=True) as is_first:
        assert is_first
        assert [may_go_on(name) for name in ("second", "third", "second")] == [False] * 3
        assert may_go_on("small", is_large=False)
        assert woken == []
    assert woken == ["second"]
    # A job that has just had a slot is behind those that wait.
    assert not may_go_on("first")
    slots.withdraw(ObjectKey("ml", "second"))
    assert woken == ["second", "third"]
    assert may_go_on("third")
    assert woken == ["second", "third", "first"]


@pytest.mark.looptime
async def test_large_jobs_that_fail_again_and_again_are_tried_ever_less_often() -> None:
    queue = WorkQueue[ObjectKey]()
    slots = LargeJobSlots(FairSemaphore(8), queue.add)
    tried_s = list[float]()

    async def reconcile(key: ObjectKey) -> Result:
        with slots.slot_if(key, is_large=True) as may_go_on:
            if not may_go_on:
                return Result(is_waiting=True)
            tried_s.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.1)
            raise RuntimeError("the server is broken")

    controller = Controller("jobs", queue, reconcile, Metrics())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(controller.run())
        for number in range(30):
            queue.add(ObjectKey("ml", f"job-{number}"))
        await asyncio.sleep(300)
        running.cancel()
    assert sum(time > 240 for time in tried_s) <= 30
