"""How a controller starts, runs reconciles beside each other, and stops."""

import asyncio
import itertools

import pytest

from dlctl.controller.controller import Controller, Result
from dlctl.metrics import Metrics
from dlctl.workqueue.queue import WorkQueue
from tests.controller.scripted import NAME, Make, ScriptedReconciler, count, results, run_for

pytestmark = pytest.mark.looptime


async def test_no_key_is_processed_before_the_stores_have_synced(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    reconcile = ScriptedReconciler()
    waits = [lambda: asyncio.sleep(3), lambda: asyncio.sleep(4)]
    queue.add("added before the start")
    await run_for(Controller(NAME, queue, reconcile, metrics, wait_synced=waits), 10)

    assert reconcile.seen == [("added before the start", 7)]


async def test_controller_can_be_cancelled_while_it_waits_for_the_stores(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    controller = Controller(
        NAME, queue, ScriptedReconciler(), metrics, wait_synced=[asyncio.Event().wait]
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(controller.run())
        await asyncio.sleep(1)
        running.cancel()

    assert running.cancelled()


async def test_controller_runs_only_once(make: Make) -> None:
    controller = make(ScriptedReconciler())
    await run_for(controller, 1)

    with pytest.raises(RuntimeError, match="already started"):
        await controller.run()


async def test_controller_that_may_run_nothing_is_rejected(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    with pytest.raises(ValueError, match="expected max_concurrent_reconciles >= 1"):
        Controller(NAME, queue, ScriptedReconciler(), metrics, max_concurrent_reconciles=0)


async def test_reconciles_run_concurrently_but_never_of_the_same_key(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    at_work: list[str] = []
    most = 0

    async def reconcile(key: str) -> Result:
        nonlocal most
        assert key not in at_work
        at_work.append(key)
        most = max(most, len(at_work))
        queue.add(key)
        await asyncio.sleep(1)
        at_work.remove(key)
        return Result()

    for key in "abcd":
        queue.add(key)
    await run_for(Controller(NAME, queue, reconcile, metrics, max_concurrent_reconciles=3), 7.5)

    assert most == 3
    assert count(metrics, "controller_runtime_max_concurrent_reconciles") == 3
    assert results(metrics).keys() == {"success"}


async def test_active_workers_are_those_with_a_key(queue: WorkQueue[str], metrics: Metrics) -> None:
    active: list[float] = []

    async def reconcile(_: str) -> Result:
        active.append(count(metrics, "controller_runtime_active_workers"))
        return Result()

    queue.add("a")
    await run_for(Controller(NAME, queue, reconcile, metrics, max_concurrent_reconciles=4), 1)

    assert active == [1]
    assert count(metrics, "controller_runtime_active_workers") == 0
    assert count(metrics, "controller_runtime_reconcile_time_seconds_count") == 1


async def test_stop_processes_ready_keys_and_accepts_no_new_ones(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    finished: list[str] = []

    async def reconcile(key: str) -> Result:
        await asyncio.sleep(3)
        finished.append(key)
        return Result(requeue_after_s=1)

    for key in "ab":
        queue.add(key)
    await run_for(Controller(NAME, queue, reconcile, metrics), 1)
    queue.add("c")

    assert finished == ["a", "b"]


async def test_stop_cancels_work_after_the_grace_period(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    cleaned_up = False

    async def reconcile(_: str) -> Result:
        nonlocal cleaned_up
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            cleaned_up = True
        return Result()

    queue.add("a")
    await run_for(Controller(NAME, queue, reconcile, metrics), 1)

    assert cleaned_up
    assert asyncio.get_running_loop().time() == pytest.approx(12)
    assert len(asyncio.all_tasks()) == 1


async def test_stop_waits_until_late_reconciles_have_cleaned_up(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    cleaned_up: list[str] = []

    async def reconcile(key: str) -> Result:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)
            cleaned_up.append(key)
        return Result()

    queue.add("a")
    controller = Controller(NAME, queue, reconcile, metrics)
    running = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    await controller.stop(grace_s=1)
    assert cleaned_up == ["a"]
    await asyncio.gather(running, return_exceptions=True)


async def test_controller_stopped_before_its_start_finishes_only_the_ready_keys(
    make: Make, queue: WorkQueue[str]
) -> None:
    reconciler = ScriptedReconciler()
    controller = make(reconciler)
    queue.add("ready")
    await controller.stop(grace_s=1)
    queue.add("later")

    await controller.run()

    assert reconciler.keys == ["ready"]


async def test_ready_keys_leave_turns_to_other_tasks(make: Make, queue: WorkQueue[str]) -> None:
    reconciler = ScriptedReconciler()
    seen_by_turn: list[int] = []

    async def look() -> None:
        while not seen_by_turn or seen_by_turn[-1] < 100:
            seen_by_turn.append(len(reconciler.seen))
            await asyncio.sleep(0)

    for number in range(100):
        queue.add(f"default/{number}")
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        running = group.create_task(run_for(make(reconciler), 1))
        await looking
        await running
    between = [after - before for before, after in itertools.pairwise(seen_by_turn)]
    assert max(between) <= 2
