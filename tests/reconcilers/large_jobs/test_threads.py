"""What takes long to read or to plan is computed in a thread."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dlctl.reconcilers.content_errors import Step
from dlctl.reconcilers.large_jobs.threads import (
    MIN_COST_FOR_THREAD,
    planning_cost,
    run_step,
)
from tests.builders import RUNNING, exited, make_job, make_pod, observed_of, training_job

planned = partial(run_step, Step.PLANNING)


async def test_slow_plans_are_computed_beside_the_loop() -> None:
    here = threading.current_thread()
    assert await planned("default", MIN_COST_FOR_THREAD - 1, threading.current_thread) is here
    assert await planned("default", MIN_COST_FOR_THREAD, threading.current_thread) is not here


async def test_slow_plans_of_one_namespace_do_not_delay_one_of_another() -> None:
    done = list[str]()

    async def plan(namespace: str) -> None:
        await planned(namespace, MIN_COST_FOR_THREAD, partial(time.sleep, 0.001))
        done.append(namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(plan("crowd"))
        await asyncio.sleep(0)
        group.create_task(plan("quiet"))
    assert done.index("quiet") <= 2


def test_jobs_with_many_failed_replicas_are_slow_to_plan() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=9))
    failed = [make_pod(job, replica, phase="Failed", state=exited(1)) for replica in job.replicas]
    done = [make_pod(job, replica, phase="Succeeded", state=exited(0)) for replica in job.replicas]
    assert planning_cost(job, observed_of(job, *failed)) >= MIN_COST_FOR_THREAD
    assert planning_cost(job, observed_of(job, *done)) == 10


def test_jobs_with_many_replicas_that_ran_again_in_place_are_slow_to_plan() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=9))
    running = [
        make_pod(job, replica, state=RUNNING, last_state=exited(1)) for replica in job.replicas
    ]
    assert planning_cost(job, observed_of(job, *running)) >= MIN_COST_FOR_THREAD


def test_jobs_whose_logs_were_read_are_slow_to_plan() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=9))
    pod = make_pod(job, next(job.replicas), phase="Failed", state=exited(1))
    observed = observed_of(job, pod, logs={pod.metadata.uid: "no data\n"})
    assert planning_cost(job, observed) >= MIN_COST_FOR_THREAD


def test_slow_plans_are_computed_in_each_event_loop_of_a_process() -> None:
    async def plan() -> int:
        async def one() -> None:
            await planned("default", MIN_COST_FOR_THREAD, partial(time.sleep, 0.001))

        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(one())
        return 20

    with ThreadPoolExecutor() as threads:
        loops = [threads.submit(asyncio.run, plan()) for _ in range(2)]
        assert [loop.result() for loop in loops] == [20, 20]
