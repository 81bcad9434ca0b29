"""Limits of the run policy: backoff limit, active deadline and TTL."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, RestartRecord
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, exited, make_job, make_pod

FIRST = Replica("worker", 0)


def limited(**policy: Any) -> Job:
    return make_job(runPolicy=policy)


def created(job: Job, **status: Any) -> Job:
    running = JobStatus(JobPhase.RUNNING, JobState.RUNNING, start_time=NOW)
    return attrs.evolve(job, status=attrs.evolve(running, **status))


def planned_without_pods(job: Job, desired: Desired, *, after_s: float) -> Plan:
    now = NOW + datetime.timedelta(seconds=after_s)
    return plan_job(job, observe(job, Children(), now), desired, now, PlanSettings())


def planned(job: Job, *, after_s: float = 0, **worker: Any) -> Plan:
    pods = [
        make_pod(job, replica, **(worker if worker and replica == FIRST else {"state": RUNNING}))
        for replica in job.replicas
    ]
    now = NOW + datetime.timedelta(seconds=after_s)
    observed = observe(job, Children(pods), now)
    return plan_job(job, observed, Desired(), now, PlanSettings())


def restarted(failures: int) -> dict[str, RestartRecord]:
    return {"worker-1": RestartRecord(failures, failures, "gone", "Error", NOW)}


def test_job_fails_at_its_active_deadline_and_is_requeued_for_it() -> None:
    job = created(limited(activeDeadlineSeconds=60))
    early = planned(job, after_s=59)
    assert (early.status.phase, early.requeue_after_s) == (JobPhase.RUNNING, 1)
    late = planned(job, after_s=60).status
    assert (late.state, late.completion_time) == (
        JobState.FAILED,
        NOW + datetime.timedelta(seconds=60),
    )
    assert late.failure
    assert late.failure.reason == "DeadlineExceeded"
    assert late.conditions[-1].message == (
        "Job linear has failed because it was active longer than specified deadline"
    )


def test_deadline_does_not_count_while_the_gang_waits_to_be_admitted() -> None:
    job = limited(activeDeadlineSeconds=60)
    held = Desired(hold_reason="PodGroup ml/linear is not admitted by volcano")
    for after_s in (0, 90):
        made = planned_without_pods(job, held, after_s=after_s)
        assert (made.status.start_time, made.pods) == (None, ())
        assert made.status.phase is JobPhase.CREATING
        job = attrs.evolve(job, status=made.status)
    admitted = planned_without_pods(job, Desired(), after_s=100)
    assert admitted.status.start_time == NOW + datetime.timedelta(seconds=100)
    assert admitted.requeue_after_s == 60
    assert admitted.pods
    running = attrs.evolve(job, status=admitted.status)
    # Volcano may queue the rest of a job again.
    assert planned_without_pods(running, held, after_s=160).status.state is JobState.FAILED


def test_deadline_for_the_start_counts_while_the_gang_waits_to_be_admitted() -> None:
    job = limited(startingDeadlineSeconds=60)
    held = Desired(hold_reason="PodGroup ml/linear is not admitted by volcano")
    job = attrs.evolve(job, status=planned_without_pods(job, held, after_s=0).status)
    assert job.status.start_time == NOW
    assert planned_without_pods(job, held, after_s=60).status.state is JobState.FAILED


def test_deadline_of_centuries_does_not_end_a_job() -> None:
    job = created(limited(activeDeadlineSeconds=9_223_372_036))
    assert planned(job, after_s=60).status.phase is JobPhase.RUNNING


def test_deadline_does_not_undo_a_success() -> None:
    job = make_job(
        runPolicy={"activeDeadlineSeconds": 60},
        terminationPolicy={"chief": {"replicaName": "WORKER", "replicaIndex": 0}},
    )
    ended = planned(created(job), after_s=90, phase="Succeeded", state=exited(0))
    assert ended.status.state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("limit", "failures", "state"),
    [
        (0, 0, JobState.RUNNING),
        (0, 1, JobState.FAILED),
        (1, 1, JobState.FAILED),
        (3, 2, JobState.RUNNING),
        (3, 3, JobState.FAILED),
    ],
)
def test_backoff_limit_counts_failures_of_replaced_pods(
    limit: int, failures: int, state: JobState
) -> None:
    restarts = restarted(failures) if failures else {}
    made = planned(created(limited(backoffLimit=limit), restarts=restarts))
    assert made.status.state is state


def test_backoff_limit_counts_restarts_in_place() -> None:
    job = created(limited(backoffLimit=2), restarts=restarted(1))
    made = planned(job, state=RUNNING, last_state=exited(137))
    assert made.status.failure
    assert made.status.failure.reason == "BackoffLimitExceeded"


def test_backoff_limit_ignores_restarts_in_a_finished_pod() -> None:
    job = created(limited(backoffLimit=1))
    made = planned(job, phase="Succeeded", state=exited(0), last_state=exited(137), **restarts(5))
    assert made.status.state is JobState.RUNNING


def restarts(count: int) -> dict[str, Any]:
    """Return the status of an init container with this many restarts."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    init = {"name": "fetch", "state": waiting, "lastState": exited(137), "restartCount": count}
    return {"initContainerStatuses": [init]}


def test_backoff_limit_counts_crashes_of_init_containers() -> None:
    job = created(limited(backoffLimit=3))
    waiting = {"waiting": {"reason": "PodInitializing"}}
    going = planned(job, phase="Pending", state=waiting, **restarts(2))
    assert going.status.state is JobState.RUNNING
    made = planned(job, phase="Pending", state=waiting, **restarts(3))
    assert made.status.failure
    assert made.status.failure.reason == "BackoffLimitExceeded"


LEAVING = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    "goes",
    [
        pytest.param({"metadata": LEAVING, "state": RUNNING}, id="deleted"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, id="evicted"),
    ],
)
def test_backoff_limit_counts_restarts_in_a_deleted_pod(goes: dict[str, Any]) -> None:
    job = created(limited(backoffLimit=2))
    leaving = planned(job, last_state=exited(137), **goes)
    assert leaving.status.state is JobState.RUNNING
    counted = leaving.status.restarts["worker-0"]
    assert counted.failures == 1
    again = planned(attrs.evolve(job, status=leaving.status), last_state=exited(137), **goes)
    assert again.status.restarts["worker-0"] == counted
    successor: dict[str, Any] = {
        "metadata": {"uid": "another"},
        "state": RUNNING,
        "last_state": exited(137),
    }
    made = planned(attrs.evolve(job, status=leaving.status), **successor)
    assert made.status.failure
    assert made.status.failure.reason == "BackoffLimitExceeded"


def test_pod_that_is_deleted_after_restarts_is_replaced_at_once() -> None:
    job = created(limited(backoffLimit=9))
    leaving = planned(job, last_state=exited(137), metadata=LEAVING, state=RUNNING)
    assert not [note for note in leaving.notes if "Restarting" in note.reason]
    gone = attrs.evolve(job, status=leaving.status)
    pods = [make_pod(gone, r, state=RUNNING) for r in gone.replicas if r != FIRST]
    made = plan_job(gone, observe(gone, Children(pods), NOW), Desired(), NOW, PlanSettings())
    assert made.pods == (FIRST,)


def test_restarts_before_a_suspension_do_not_count() -> None:
    later = NOW + datetime.timedelta(seconds=30)
    job = created(limited(backoffLimit=1), start_time=later)
    made = planned(job, after_s=30, last_state=exited(137), metadata=LEAVING, state=RUNNING)
    assert (made.status.state, made.status.restarts) == (JobState.RUNNING, {})


def test_backoff_limit_ignores_disruptions() -> None:
    evicted = planned(created(limited(backoffLimit=1)), phase="Failed", reason="Evicted")
    assert evicted.status.state is JobState.RUNNING
    assert evicted.status.restarts["worker-0"].failures == 0


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED])
def test_finished_job_is_deleted_after_its_ttl(state: JobState) -> None:
    ended = JobStatus(JobPhase.DONE, state, start_time=NOW, completion_time=NOW)
    job = attrs.evolve(limited(ttlSecondsAfterFinished=30), status=ended)
    early = planned(job, after_s=10)
    assert (early.ttl_expired, early.requeue_after_s) == (False, 20)
    assert planned(job, after_s=30).ttl_expired


def test_finished_job_without_a_ttl_is_kept() -> None:
    ended = JobStatus(JobPhase.DONE, JobState.SUCCEEDED, completion_time=NOW)
    made = planned(attrs.evolve(limited(), status=ended), after_s=1e8)
    assert (made.ttl_expired, made.requeue_after_s) == (False, None)


def test_job_is_cleaned_up_before_it_is_deleted() -> None:
    ended = JobStatus(JobPhase.CLEAN_UP, JobState.SUCCEEDED, completion_time=NOW)
    made = planned(attrs.evolve(limited(ttlSecondsAfterFinished=0), status=ended))
    assert (made.ttl_expired, len(made.deleted_pods)) == (False, 4)
