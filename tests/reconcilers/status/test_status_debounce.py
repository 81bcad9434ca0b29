"""Statuses that differ only in counts are written at a limited rate."""

import attrs
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, Replica
from dlctl.api.objects.workloads import Workload
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.api.status.membership import Membership
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from dlctl.dialects.et_operator.training_conditions import WORKERS_CREATED
from dlctl.reconcilers.kueue.workload_waiting import workload_waiting
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.status.status_debounce import (
    MAX_INTERVAL_S,
    MIN_INTERVAL_S,
    debounce_counts,
    defer_first_status,
)
from tests.builders import NOW, make_job, mxjob
from tests.dialects.et_operator.manifests import read_job

NOTE = EventNote("Normal", "Reason", "message")


def running_job(workers: int, active: int, completed: frozenset[int] = frozenset()) -> Job:
    job = make_job(mxjob(workers=workers))
    return attrs.evolve(job, status=status(active, completed))


def status(active: int, completed: frozenset[int] = frozenset()) -> JobStatus:
    worker = ReplicaStatus(
        "worker", JobState.RUNNING, {JobState.RUNNING: active}, completed_indexes=completed
    )
    return JobStatus(JobPhase.RUNNING, JobState.RUNNING, replica_statuses=(worker,))


@pytest.mark.parametrize(
    ("workers", "since_write_s", "held_back_s"),
    [
        pytest.param(2, 0.4, 0.6, id="small job"),
        pytest.param(400, 1.0, 3.0 + 0.03, id="in proportion to its replicas"),
        pytest.param(5000, 1.0, 9.0, id="large job"),
    ],
)
def test_status_that_differs_only_in_counts_is_delayed(
    workers: int, since_write_s: float, held_back_s: float
) -> None:
    job = running_job(workers, 1)
    new = Plan(status(job.total_replicas), notes=(NOTE,), action_notes=(NOTE,))
    plan = debounce_counts(job, new, since_write_s)
    assert (plan.status, plan.notes) == (job.status, ())
    assert plan.action_notes == (NOTE,)
    assert plan.requeue_after_s == pytest.approx(held_back_s, abs=0.05)


@pytest.mark.parametrize("waiting", [JobState.UNKNOWN, None], ids=["counted", "not counted"])
def test_counts_wait_longer_while_replicas_are_still_to_start(waiting: JobState | None) -> None:
    job = running_job(workers=2, active=1)
    some = status(2)
    if waiting:
        worker = attrs.evolve(
            some.replica_statuses[0], count_by_state={JobState.RUNNING: 2, waiting: 2}
        )
        some = attrs.evolve(some, replica_statuses=(worker,))
    plan = debounce_counts(job, Plan(some), 1.1)
    assert plan.status == job.status
    assert plan.requeue_after_s == pytest.approx(MAX_INTERVAL_S - 1.1)
    assert debounce_counts(job, Plan(some), MAX_INTERVAL_S).status == some


def test_counts_are_written_after_the_interval() -> None:
    job = running_job(2, 1)
    plan = Plan(status(job.total_replicas), notes=(NOTE,))
    assert debounce_counts(job, plan, 1.1) == plan


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(attrs.evolve(status(2), phase=JobPhase.CLEAN_UP), id="phase"),
        pytest.param(status(2, completed=frozenset({0})), id="completed replica"),
        pytest.param(attrs.evolve(status(2), reason="other"), id="reason"),
    ],
)
def test_other_changes_are_written_at_once(new: JobStatus) -> None:
    plan = Plan(new, notes=(NOTE,))
    assert debounce_counts(running_job(2, 1), plan, 0.0) == plan


def test_plan_of_an_unchanged_status_is_kept() -> None:
    job = running_job(2, 1)
    plan = Plan(job.status, notes=(NOTE,))
    assert debounce_counts(job, plan, 0.0) == plan


@pytest.mark.parametrize(
    ("type_", "interval_s"),
    [(conditions.CREATED, MIN_INTERVAL_S), (WORKERS_CREATED, MAX_INTERVAL_S)],
)
def test_counts_of_an_elastic_job_wait_longer_after_its_first_progress(
    type_: str, interval_s: float
) -> None:
    before = attrs.evolve(status(1), conditions=(Condition.at(NOW, type_, "Reason", ""),))
    job = attrs.evolve(read_job(), status=before)
    new = attrs.evolve(status(2), conditions=before.conditions)
    assert debounce_counts(job, Plan(new), 0.0).requeue_after_s == interval_s


def test_replicas_that_fall_with_the_first_are_written_together() -> None:
    verdict = Verdict(Cause.USER_CODE, Confidence.LOW, "exit code 1", NOW, "worker-0", "pod")
    later = attrs.evolve(verdict, collateral=("worker-1",), collateral_count=1)
    other = attrs.evolve(later, replica="worker-1")
    before, more, better = (
        attrs.evolve(status(2), attempts=(Attempt(0, NOW, NOW, each),))
        for each in (verdict, later, other)
    )
    job = attrs.evolve(make_job(mxjob(workers=2)), status=before)
    assert debounce_counts(job, Plan(more), 0.0).status == before
    assert debounce_counts(job, Plan(more), MAX_INTERVAL_S).status == more
    assert debounce_counts(job, Plan(better), 0.0).status == better
    first = attrs.evolve(job, status=status(2))
    assert debounce_counts(first, Plan(before), 0.0).status == before


def test_new_position_in_a_queue_is_written_after_the_interval() -> None:
    def waits(position: str | None) -> JobStatus:
        found = workload_waiting(Workload(), position)
        assert found is not None
        condition = Condition.at(NOW, conditions.WAITING, found.reason, found.message)
        return attrs.evolve(status(4), conditions=(condition,))

    job = attrs.evolve(make_job(mxjob(workers=2)), status=waits("3"))
    for other in ("2", None):
        held = debounce_counts(job, Plan(waits(other)), 1.0)
        assert (held.status, held.requeue_after_s) == (job.status, MAX_INTERVAL_S - 1.0)
        assert debounce_counts(job, Plan(waits(other)), MAX_INTERVAL_S).status == waits(other)


def test_earlier_requeue_is_kept() -> None:
    plan = debounce_counts(running_job(2, 1), Plan(status(2), requeue_after_s=0.1), 0.0)
    assert plan.requeue_after_s == 0.1


FIRST = JobStatus(JobPhase.CREATING, JobState.RUNNING)
PODS = (Replica("worker", 0), Replica("worker", 1))


def test_first_status_of_a_small_job_waits_for_its_children() -> None:
    plan = defer_first_status(make_job(mxjob()), Plan(FIRST, notes=(NOTE,), pods=PODS), 1.0)
    assert (plan.status, plan.notes, plan.pods) == (JobStatus(), (), PODS)
    assert plan.requeue_after_s is not None
    assert 0 < plan.requeue_after_s < 1


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(FIRST), id="without children"),
        pytest.param(Plan(FIRST, pods=PODS * 50), id="with many"),
        pytest.param(Plan(attrs.evolve(FIRST, phase=JobPhase.CLEAN_UP), pods=PODS), id="ended"),
        pytest.param(Plan(attrs.evolve(FIRST, version="v1"), pods=PODS), id="version"),
        pytest.param(Plan(attrs.evolve(FIRST, membership=Membership()), pods=PODS), id="members"),
        pytest.param(
            Plan(attrs.evolve(FIRST, attempts=(Attempt(0, NOW),)), pods=PODS), id="attempts"
        ),
    ],
)
def test_other_first_statuses_are_written_at_once(plan: Plan) -> None:
    assert defer_first_status(make_job(mxjob()), plan, 1.0) == plan


def test_later_statuses_are_written_before_children() -> None:
    job = running_job(workers=2, active=1)
    plan = Plan(attrs.evolve(FIRST, start_time=NOW), pods=PODS)
    assert defer_first_status(job, plan, 1.0) == plan
