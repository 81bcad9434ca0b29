"""How long a verdict waits for logs."""

import asyncio
from contextlib import nullcontext

import pytest

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.kube.errors import UnreachableError
from dlctl.reconcilers.failures.failure_logs import FailureLogs
from dlctl.reconcilers.failures.log_requests import LogTailRequest
from dlctl.reconcilers.failures.log_tails import READ_TIMEOUT_S
from dlctl.reconcilers.failures.tail_cache import TailCache
from dlctl.reconcilers.observe import Children, observe
from tests.reconcilers.failures.torch_jobs import after, at, failed, pods, running, torch_job
from tests.support.timing import ManualClock


@pytest.mark.parametrize("times_out", [False, True], ids=["it is still read", "it has timed out"])
async def test_nodes_that_do_not_answer_delay_a_job_once(*, times_out: bool) -> None:
    clock, has_ended = ManualClock(at(31).timestamp()), asyncio.Event()

    async def read(_: ObjectKey, __: LogTailRequest) -> None:
        if not times_out:
            await asyncio.Event().wait()
        raise UnreachableError("no answer")

    tasks = BackgroundTasks(
        read, lambda _: has_ended.set(), controller="jobs", limiter=lambda *_: nullcontext()
    )
    logs = FailureLogs(tasks, 4, clock, TailCache(1000))

    async def wait_s(job: Job, found: list[Pod]) -> float:
        return (await logs.of(job, observe(job, Children(found), clock.now()))).wait_s

    async with asyncio.TaskGroup() as group:
        run = group.create_task(tasks.run())
        job = running(torch_job())
        first = failed(137, 30)
        assert await wait_s(job, pods(job, worker1=first)) == READ_TIMEOUT_S
        if times_out:
            await has_ended.wait()
        clock.seconds += READ_TIMEOUT_S
        job = after(job, pods(job, worker1=first), 36)
        assert await wait_s(job, pods(job, worker1=first, worker0=failed(134, 34, "b"))) == 0
        run.cancel()
