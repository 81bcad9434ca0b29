"""A program that a signal has stopped: whoever sent it, it counts unless the API says why."""

from typing import Any

import pytest

from dlctl.api.job import Job
from dlctl.api.status import conditions
from dlctl.api.status.verdict import Cause
from tests.reconcilers.failures.gangs import disrupted
from tests.reconcilers.failures.torch_jobs import after, causes, failed, pods, running, torch_job


def _has_failed(job: Job) -> bool:
    return conditions.is_true(job.status.conditions, conditions.FAILED)


@pytest.mark.parametrize("code", [129, 130, 137, 143])
def test_stop_by_nobody_known_counts(code: int) -> None:
    job = running(torch_job("Never", failurePolicy={"maxRestarts": 0}))
    job = after(job, pods(job, worker1=failed(code, 30)), 40)
    assert causes(job) == [(Cause.UNKNOWN, "worker-1")]
    assert _has_failed(job)


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        pytest.param(disrupted("EvictionByEvictionAPI"), Cause.EVICTION, id="drained"),
        pytest.param({"reason": "Terminated"}, Cause.NODE, id="node shut down"),
        pytest.param({"reason": "Preempting"}, Cause.PREEMPTION, id="preempted"),
    ],
)
@pytest.mark.parametrize("code", [137, 143])
def test_stop_that_the_api_explains_does_not_count(
    code: int, status: dict[str, Any], cause: Cause
) -> None:
    job = running(torch_job("Never", failurePolicy={"maxRestarts": 0}))
    job = after(job, pods(job, worker1={**failed(code, 30), **status}), 40)
    assert causes(job) == [(cause, "worker-1")]
    assert not _has_failed(job)
    assert job.status.counted_restarts == 0
