import asyncio
import logging

import pytest

from dlctl import logs
from dlctl.controller.controller import RESULTS, Controller, Result
from dlctl.errors import TerminalError
from dlctl.kube.errors import ConflictError
from dlctl.metrics import Metrics
from dlctl.workqueue.queue import WorkQueue
from tests.controller.scripted import NAME, Make, ScriptedReconciler, count, results, run_for

pytestmark = pytest.mark.looptime

CONFLICT = ConflictError("changed meanwhile", code=409, reason="Conflict")


async def test_success_does_not_requeue_and_resets_the_backoff(
    make: Make, queue: WorkQueue[str], metrics: Metrics
) -> None:
    reconcile = ScriptedReconciler(CONFLICT, CONFLICT)
    queue.add("a")
    await run_for(make(reconcile), 60)

    assert reconcile.times_s == [0, 1, 3]
    assert queue.num_requeues("a") == 0
    assert results(metrics) == {"error": 2, "success": 1}


async def test_error_of_one_key_does_not_delay_another(make: Make, queue: WorkQueue[str]) -> None:
    reconcile = ScriptedReconciler(RuntimeError("a bug"))
    queue.add("a")
    queue.add("b")
    await run_for(make(reconcile), 0.5)

    assert reconcile.keys == ["a", "b"]


async def test_terminal_error_neither_requeues_nor_resets_the_backoff(
    make: Make, queue: WorkQueue[str], metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    reconcile = ScriptedReconciler(CONFLICT, TerminalError("there is nothing to be done"))
    queue.add("a")
    await run_for(make(reconcile), 500)

    assert len(reconcile.seen) == 2
    assert queue.num_requeues("a") == 1
    assert results(metrics) == {"error": 2}
    assert caplog.messages == ["reconcile failed", "reconcile failed, not retried"]
    assert count(metrics, "controller_runtime_terminal_reconcile_errors_total") == 1
    assert count(metrics, "controller_runtime_reconcile_errors_total") == 2


async def test_requeue_continues_the_backoff(
    make: Make, queue: WorkQueue[str], metrics: Metrics
) -> None:
    reconcile = ScriptedReconciler(*[Result(requeue=True)] * 3)
    queue.add("a")
    await run_for(make(reconcile), 60)

    assert reconcile.times_s == [0, 1, 3, 7]
    assert results(metrics) == {"requeue": 3, "success": 1}


@pytest.mark.parametrize(
    ("requeues", "logged"),
    [pytest.param(7, [], id="few"), pytest.param(40, [8, 16, 32], id="many")],
)
async def test_requeues_after_an_error_are_logged_ever_more_rarely(
    requeues: int,
    logged: list[int],
    make: Make,
    queue: WorkQueue[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    results = [Result(requeue=True, error=CONFLICT)] * requeues
    queue.add("a")
    await run_for(make(ScriptedReconciler(*results)), 1e6)
    found = [vars(record) for record in caplog.records if record.levelno == logging.WARNING]
    assert [one["retries"] for one in found] == logged
    assert {one[logs.ERROR] for one in found} <= {"changed meanwhile"}


async def test_reconcile_that_waits_neither_requeues_nor_resets_the_backoff(
    make: Make, queue: WorkQueue[str], metrics: Metrics
) -> None:
    reconcile = ScriptedReconciler(CONFLICT, CONFLICT, Result(is_waiting=True), CONFLICT)
    queue.add("a")
    asyncio.get_running_loop().call_later(10, queue.add, "a")
    await run_for(make(reconcile), 60)

    assert reconcile.times_s == [0, 1, 3, 10, 14]
    assert results(metrics) == {"error": 3, "success": 2}


async def test_requeue_after_resets_the_backoff_and_waits_as_long_as_given(
    make: Make, queue: WorkQueue[str], metrics: Metrics
) -> None:
    reconcile = ScriptedReconciler(CONFLICT, Result(requeue_after_s=30, requeue=True), CONFLICT)
    queue.add("a")
    await run_for(make(reconcile), 100)

    assert reconcile.times_s == [0, 1, 31, 32]
    assert results(metrics) == {"error": 2, "requeue_after": 1, "success": 1}


@pytest.mark.parametrize("seconds", [pytest.param(0, id="now"), pytest.param(-5, id="past")])
async def test_requeue_after_zero_or_less_is_immediate(
    make: Make, queue: WorkQueue[str], seconds: float
) -> None:
    reconcile = ScriptedReconciler(Result(requeue_after_s=seconds))
    queue.add("a")
    await run_for(make(reconcile), 1)

    assert reconcile.times_s == [0, 0]


async def test_requeued_key_keeps_its_priority(make: Make, queue: WorkQueue[str]) -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        if len(seen) > 1:
            return Result()
        queue.add("other", priority=-1)
        return Result(requeue_after_s=0)

    queue.add("low", priority=-100)
    await run_for(make(reconcile), 1)

    assert seen == ["low", "other", "low"]


async def test_only_a_bug_is_counted_as_one_and_logged_with_a_traceback(
    make: Make, queue: WorkQueue[str], metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    queue.add("a")
    queue.add("b")
    await run_for(make(ScriptedReconciler(KeyError("oops"), CONFLICT)), 0.5)

    assert count(metrics, "controller_runtime_reconcile_panics_total") == 1
    failures = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in failures] == ["reconcile failed"] * 2
    assert [bool(record.exc_info) for record in failures] == [True, False]
    assert [vars(record)["error"] for record in failures] == ["'oops'", str(CONFLICT)]


async def test_reconcile_timeout_is_counted_and_retried(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    started: list[float] = []

    async def reconcile(_: str) -> Result:
        started.append(asyncio.get_running_loop().time())
        if len(started) == 1:
            await asyncio.sleep(1000)
        return Result()

    queue.add("a")
    await run_for(Controller(NAME, queue, reconcile, metrics, timeout_s=5), 60)

    assert started == pytest.approx([0, 6])
    assert count(metrics, "controller_runtime_reconcile_timeouts_total") == 1
    assert count(metrics, "controller_runtime_reconcile_panics_total") == 0
    assert results(metrics) == {"error": 1, "success": 1}


async def test_reconcilers_own_timeout_is_not_counted_as_a_reconcile_timeout(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    async def reconcile(_: str) -> Result:
        async with asyncio.timeout(1):
            await asyncio.sleep(1000)
        return Result()

    queue.add("a")
    await run_for(Controller(NAME, queue, reconcile, metrics, timeout_s=50), 1.5)

    assert count(metrics, "controller_runtime_reconcile_timeouts_total") == 0
    assert results(metrics) == {"error": 1}


async def test_cancelled_reconcile_is_not_counted_as_a_timeout(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    async def reconcile(_: str) -> Result:
        await asyncio.sleep(1000)
        return Result()

    controller = Controller(NAME, queue, reconcile, metrics, timeout_s=50)
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(controller.run())
        await asyncio.sleep(1)
        running.cancel()

    assert count(metrics, "controller_runtime_reconcile_timeouts_total") == 0
    assert results(metrics) == {}
    assert count(metrics, "controller_runtime_active_workers") == 0
    # The key was marked done, so it can be taken again.
    queue.add("a")
    assert await queue.get() == "a"


async def test_each_reconcile_is_logged_with_its_own_id(make: Make, queue: WorkQueue[str]) -> None:
    seen: list[dict[str, object]] = []

    async def reconcile(_: str) -> Result:
        seen.append(dict(logs.current_fields()))
        return Result(requeue_after_s=1 if len(seen) == 1 else None)

    queue.add("ml/linear")
    await run_for(make(reconcile), 5)

    assert [fields["controller"] for fields in seen] == [NAME, NAME]
    assert [fields["object"] for fields in seen] == ["ml/linear", "ml/linear"]
    assert seen[0]["reconcile_id"] != seen[1]["reconcile_id"]
    assert logs.current_fields() == {}


async def test_counters_start_at_zero(make: Make, metrics: Metrics) -> None:
    make(ScriptedReconciler())

    for result in RESULTS:
        assert count(metrics, "controller_runtime_reconcile_total", result=result) == 0
    for name in ("reconcile_errors", "terminal_reconcile_errors", "reconcile_panics"):
        assert count(metrics, f"controller_runtime_{name}_total") == 0
