import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

import pytest

from dlctl import logs
from dlctl.backoff import Backoff
from dlctl.controller.controller import RESULTS, Controller, Result
from dlctl.errors import TerminalError
from dlctl.kube.errors import ConflictError
from dlctl.metrics import Metrics
from dlctl.workqueue.item_backoff import ItemBackoff
from dlctl.workqueue.queue import WorkQueue

pytestmark = pytest.mark.looptime

NAME = "mxjobs"
CONFLICT = ConflictError("changed meanwhile", code=409, reason="Conflict")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue(backoff=ItemBackoff(Backoff(base_s=1, cap_s=100)))


class ScriptedReconciler:
    """A reconciler that returns the given results in turn, then succeeds; it records its keys."""

    def __init__(self, *answers: Result | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, float]] = []

    async def __call__(self, key: str) -> Result:
        self.seen.append((key, round(asyncio.get_running_loop().time(), 3)))
        answer = self.answers.pop(0) if self.answers else Result()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.seen]

    @property
    def times_s(self) -> list[float]:
        return [time for _, time in self.seen]


@pytest.fixture
def make(
    queue: WorkQueue[str], metrics: Metrics
) -> Callable[[Callable[[str], Awaitable[Result]]], Controller[str]]:
    return lambda reconcile: Controller(NAME, queue, reconcile, metrics)


Make = Callable[[Callable[[str], Awaitable[Result]]], Controller[str]]


async def run_for(controller: Controller[str], seconds: float) -> None:
    """Run the controller for this long in loop time, then stop it."""
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.run())
        await asyncio.sleep(seconds)
        await controller.stop(grace_s=10)


def count(metrics: Metrics, name: str, **labels: str) -> float:
    value = metrics.registry.get_sample_value(name, {"controller": NAME, **labels})
    assert value is not None, f"{name} does not exist yet"
    return value


def results(metrics: Metrics) -> dict[str, float]:
    name = "controller_runtime_reconcile_total"
    counts = {result: count(metrics, name, result=result) for result in RESULTS}
    return {result: number for result, number in counts.items() if number}


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
    make: Make, queue: WorkQueue[str], metrics: Metrics
) -> None:
    reconcile = ScriptedReconciler(CONFLICT, TerminalError("there is nothing to be done"))
    queue.add("a")
    await run_for(make(reconcile), 500)

    assert len(reconcile.seen) == 2
    assert queue.num_requeues("a") == 1
    assert results(metrics) == {"error": 2}
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


async def test_controller_stopped_before_its_start_runs_nothing(make: Make) -> None:
    controller = make(ScriptedReconciler())
    await controller.stop(grace_s=1)

    await controller.run()


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
