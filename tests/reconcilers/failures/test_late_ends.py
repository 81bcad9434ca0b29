"""Ends that are seen after the verdict on their attempt: when they change it."""

import pytest

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import Pod
from dlctl.api.status.verdict import Cause, Verdict
from tests.builders import NOW
from tests.reconcilers.failures.torch_jobs import (
    after,
    attempts,
    causes,
    failed,
    pods,
    running,
    torch_job,
)

EVICTED = {**failed(137, 32), "reason": "Evicted", "startTime": NOW.isoformat()}


def blamed(end: JSON) -> Job:
    """Return a job whose worker 1 has failed, and is the cause as far as is known."""
    job = running(torch_job())
    return after(job, pods(job, worker1=end), 31)


def verdict(job: Job) -> Verdict:
    (attempt,) = attempts(job)
    assert attempt.verdict is not None
    return attempt.verdict


def replaced(job: Job, **states: JSON) -> list[Pod]:
    """Return pods of which that of worker 1 starts again."""
    pending = {"phase": "Pending", "state": None, "metadata": {"uid": "new"}}
    return pods(job, "a", worker1=pending, **states)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(failed(137, 30, reason="OOMKilled"), id="weaker"),
        pytest.param(failed(137, 30), id="as strong"),
    ],
)
def test_verdict_stays_without_its_pod_unless_another_cause_is_proved_better(first: JSON) -> None:
    job = blamed(first)
    before = verdict(job)
    late = {"worker0": failed(137, 32), "master0": failed(137, 33)}
    assert verdict(after(job, replaced(job, **late), 34)) == before


def test_cause_that_is_proved_better_replaces_that_of_a_pod_that_is_gone() -> None:
    job = blamed(failed(137, 30))
    job = after(job, replaced(job, worker0=EVICTED, master0=failed(137, 33)), 34)
    assert causes(job) == [(Cause.EVICTION, "worker-0")]


def test_earlier_end_that_is_seen_later_is_the_cause() -> None:
    first = failed(137, 30)
    job = blamed(first)
    job = after(job, pods(job, worker1=first, worker0=failed(137, 28)), 34)
    assert verdict(job).replica == "worker-0"
    assert verdict(job).collateral == ("worker-1",)
