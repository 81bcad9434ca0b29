"""Recorded times in the future do not hold up a job."""

import datetime

import attrs
import pytest

from dlctl.api.status.job_status import JobPhase, JobStatus, RestartRecord
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.api.status.verdict import Attempt
from dlctl.reconcilers.lifecycle.future_times import without_future_times
from tests.builders import NOW, make_job, training_job
from tests.reconcilers.failures.torch_jobs import after, at, attempts, failed, pods, running

FAR = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
RECORD = RestartRecord(1, 1, "uid", "Error", NOW)


@pytest.mark.parametrize("left_s", [-3600, 0, 30])
def test_status_with_plausible_times_is_the_same(left_s: float) -> None:
    time = at(left_s)
    restarts = {"worker-0": attrs.evolve(RECORD, finished_at=time)}
    attempt = Attempt(0, time, time)
    status = JobStatus(attempts=(attempt,), restarts=restarts, avoidance_dropped_at=time)
    assert without_future_times(status, NOW) is status


@pytest.mark.parametrize("time", [at(3600), FAR], ids=["an hour", "the end of time"])
def test_times_in_the_future_become_the_present(time: datetime.datetime) -> None:
    restarts = {"worker-0": attrs.evolve(RECORD, finished_at=time), "worker-1": RECORD}
    attempt = Attempt(0, time, time)
    status = JobStatus(attempts=(attempt,), restarts=restarts, avoidance_dropped_at=time)
    expected = JobStatus(
        attempts=(Attempt(0, NOW, NOW),),
        restarts={"worker-0": RECORD, "worker-1": RECORD},
        avoidance_dropped_at=NOW,
    )
    assert without_future_times(status, NOW) == expected


def test_change_of_workers_that_begins_later_begins_now() -> None:
    far, before = ScaleOperation(True, (2,), FAR), ScaleOperation(False, (1,), at(-60))
    status = JobStatus(membership=Membership(scaling=far, evacuating=before))
    now = attrs.evolve(far, since=NOW)
    expected = JobStatus(membership=Membership(scaling=now, evacuating=before))
    assert without_future_times(status, NOW) == expected


@pytest.mark.parametrize("year", [1, 1970, 2100, 9999])
def test_job_with_wrong_times_restarts_again_and_again(year: int) -> None:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    manifest["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 9}}
    job = running(make_job(manifest))
    job = after(job, pods(job, worker1=failed(3, 30)), 40)
    wrong = FAR.replace(year=year)
    ended = attrs.evolve(attempts(job)[0], end_time=wrong, start_time=wrong)
    job = attrs.evolve(job, status=attrs.evolve(job.status, attempts=(ended,)))
    for seconds in (41, 60, 61):
        job = after(job, [], seconds)
    assert job.status.phase is JobPhase.CREATING
    labels = {"dlctl.dev/restart-attempt": "1"}
    created = {"uid": "b", "creationTimestamp": at(62).isoformat(), "labels": labels}
    again = {**failed(3, 70, started=62), "metadata": created}
    job = after(job, pods(job, worker1=again), 80)
    assert (job.status.phase, job.status.job_restarts) == (JobPhase.RESTARTING, 2)
