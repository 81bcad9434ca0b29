"""Failures of jobs whose spec cannot be read are decided once it can."""

import attrs
import pytest

from dlctl.api.job import Job
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Cause
from tests.builders import make_job, training_job
from tests.reconcilers.failures.policy_jobs import (
    ENDED,
    end_of,
    failure_reason,
    torch,
    without,
)
from tests.reconcilers.failures.torch_jobs import (
    after,
    attempts,
    causes,
    failed,
    planned,
    pods,
    running,
)


def unreadable(job: Job) -> Job:
    """Return the job with a spec of which a part cannot be read."""
    return attrs.evolve(job, is_partial=True, invalid_reason="replicas is no number")


def repaired(job: Job, valid: Job) -> Job:
    return attrs.evolve(valid, status=job.status)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        pytest.param(0, (JobPhase.CLEAN_UP, 0, 0), id="no restart left"),
        pytest.param(1, (JobPhase.RESTARTING, 1, 1), id="a restart left"),
    ],
)
def test_failure_is_decided_once_the_spec_can_be_read(
    limit: int, outcome: tuple[JobPhase, int, int]
) -> None:
    valid = torch(limit=limit)
    found = pods(valid, worker1=failed(1, 30))
    job = unreadable(valid)
    for seconds in (31, 35, 120):
        plan = planned(job, found, seconds)
        assert (plan.pods, plan.deleted_pods) == ((), ())
        assert [note.reason for note in plan.notes] == ["PyTorchJobInvalid"] * (seconds == 31)
        assert attrs.evolve(plan.status, conditions=()) == attrs.evolve(valid.status, conditions=())
        job = attrs.evolve(job, status=plan.status)
    assert planned(job, found, 121).status == job.status
    job = after(repaired(job, valid), found, 130)
    assert end_of(job) == outcome
    assert failure_reason(job) == ("" if limit else "ReachedMaxRestarts")
    assert causes(job) == [(Cause.USER_CODE, "worker-1")]


def test_job_succeeds_although_a_failure_waits_for_its_spec() -> None:
    valid = torch()
    found = pods(valid, worker1=failed(1, 30), master0=ENDED)
    job = after(unreadable(valid), found, 31)
    assert job.status.state == "Succeeded"


def test_job_without_a_policy_records_failures_while_its_spec_cannot_be_read() -> None:
    wire = training_job("PyTorchJob", Master=1, Worker=2)
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    valid = running(make_job(wire))
    job = after(unreadable(valid), pods(valid, worker1=failed(137, 30)), 31)
    assert causes(job) == [(Cause.UNKNOWN, "worker-1")]
    assert "worker-1" in job.status.restarts


def test_replica_that_vanished_while_the_spec_could_not_be_read_restarts_the_job() -> None:
    valid = torch()
    job = after(unreadable(valid), without(pods(valid), "worker-1"), 30)
    assert attempts(job) == ()
    job = after(repaired(job, valid), without(pods(valid), "worker-1"), 60)
    assert end_of(job) == (JobPhase.RESTARTING, 1, 0)
