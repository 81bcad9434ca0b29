"""What becomes of background work that fails, on simulated loop time."""

import asyncio
from collections.abc import Callable

import attrs
import pytest

from dlctl.controller.runnables import BACKOFF, keep_running
from dlctl.kube.errors import UnreachableError
from dlctl.metrics import Metrics

pytestmark = pytest.mark.looptime


@attrs.define(eq=False)
class FailingWork:
    """Work that fails a second after each of its first starts, and then goes on."""

    fail: Callable[[], None]
    failures: float
    started_at: list[float] = attrs.field(factory=list)

    async def run(self) -> None:
        self.started_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
        if len(self.started_at) <= self.failures:
            self.fail()
        await asyncio.Event().wait()


def fail_plainly() -> None:
    raise RecursionError("too deep")


def fail_at_the_server() -> None:
    raise UnreachableError("no response in time")


def fail_in_groups() -> None:
    raise ExceptionGroup("tasks", [ExceptionGroup("more tasks", [KeyError("spec")])])


async def run_for(work: FailingWork, seconds: float) -> Metrics:
    metrics = Metrics()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(keep_running(work, metrics))
        await asyncio.sleep(seconds)
        running.cancel()
    assert running.cancelled()
    return metrics


def counts(metrics: Metrics) -> list[float | None]:
    """Return the errors, and those of them that are defects."""
    names = ("reconcile_errors_total", "reconcile_panics_total")
    labels = {"controller": "FailingWork"}
    read = metrics.registry.get_sample_value
    return [read(f"controller_runtime_{name}", labels) for name in names]


@pytest.mark.parametrize("fail", [fail_plainly, fail_in_groups, fail_at_the_server])
async def test_work_that_fails_is_logged_counted_and_run_again(
    fail: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    work = FailingWork(fail, failures=2)
    metrics = await run_for(work, 100)
    assert len(work.started_at) == 3
    assert counts(metrics) == [2, 2]
    assert len(caplog.records) == 2
    assert all(record.exc_info for record in caplog.records)


async def test_work_that_keeps_failing_pauses_longer_and_longer() -> None:
    work = FailingWork(fail_plainly, failures=float("inf"))
    await run_for(work, 3600)
    pauses = [
        later - earlier - 1
        for earlier, later in zip(work.started_at, work.started_at[1:], strict=False)
    ]
    assert 1 <= pauses[0] < pauses[2] < pauses[5]
    assert BACKOFF.cap_s <= pauses[-1] <= BACKOFF.cap_s * 1.5


async def test_work_without_an_error_has_a_count_of_zero() -> None:
    metrics = await run_for(FailingWork(fail_plainly, failures=0), 10)
    assert counts(metrics) == [0, 0]


async def test_cancellation_that_meets_an_error_is_not_lost() -> None:
    class Group:
        async def run(self) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._fail_when_cancelled())

        async def _fail_when_cancelled(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise ValueError("closing failed")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(keep_running(Group(), Metrics()))
        await asyncio.sleep(1)
        running.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait([running])
    assert running.cancelled()
