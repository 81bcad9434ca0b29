"""Large jobs are decoded and planned in a thread."""

import asyncio
import threading
import time

import pytest

from dlctl.reconcilers.large_jobs import (
    LARGE_JOB,
    LargeJobSlots,
    planning_size,
    to_thread_if_large,
)
from tests.builders import RUNNING, exited, make_job, make_pod, observed_of, training_job


async def test_large_jobs_are_decided_beside_the_loop() -> None:
    here = threading.current_thread()
    assert await to_thread_if_large("default", LARGE_JOB - 1, threading.current_thread) is here
    assert await to_thread_if_large("default", LARGE_JOB, threading.current_thread) is not here


async def test_large_jobs_of_one_namespace_do_not_delay_one_of_another() -> None:
    done = list[str]()

    async def plan(namespace: str) -> None:
        await to_thread_if_large(namespace, LARGE_JOB, time.sleep, 0.001)
        done.append(namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(plan("crowd"))
        await asyncio.sleep(0)
        group.create_task(plan("quiet"))
    assert done.index("quiet") <= 2


def test_jobs_with_many_failed_replicas_are_large() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=9))
    failed = [make_pod(job, replica, phase="Failed", state=exited(1)) for replica in job.replicas]
    done = [make_pod(job, replica, phase="Succeeded", state=exited(0)) for replica in job.replicas]
    assert planning_size(job, observed_of(job, *failed)) >= LARGE_JOB
    assert planning_size(job, observed_of(job, *done)) == 10


def test_jobs_with_many_replicas_that_ran_again_in_place_are_large() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=9))
    running = [
        make_pod(job, replica, state=RUNNING, last_state=exited(1)) for replica in job.replicas
    ]
    assert planning_size(job, observed_of(job, *running)) >= LARGE_JOB


def test_jobs_whose_logs_were_read_are_large() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=9))
    pod = make_pod(job, next(job.replicas), phase="Failed", state=exited(1))
    observed = observed_of(job, pod, logs={pod.metadata.uid: "no data\n"})
    assert planning_size(job, observed) >= LARGE_JOB


@pytest.mark.looptime
async def test_the_more_large_jobs_wait_for_a_slot_the_later_each_looks_again() -> None:
    slots = LargeJobSlots()
    delays_s = [slots.retry_delay_s() for _ in range(1000)]
    assert (delays_s[0], delays_s[100], delays_s[-1]) == pytest.approx((0.5, 2.5, 10))
    await asyncio.sleep(20)
    assert slots.retry_delay_s() == pytest.approx(0.5)
