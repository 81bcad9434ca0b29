"""Plans of jobs whose launcher is the pod of a batch/v1 Job."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, Replica
from dlctl.api.meta import CONFIG_MAPS, SERVICES, ObjectMeta
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import Dependent, DependentObject
from dlctl.api.objects.pod_groups import VOLCANO_POD_GROUPS
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.launcher_job.next_write import LauncherJobAction, LauncherJobWrite
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests import mpi_v2beta1 as v2beta1
from tests.builders import NOW, RUNNING, exited, make_job, make_pod
from tests.reconcilers.launcher_job.builders import (
    COMPLETE,
    FAILED,
    LAUNCHER,
    WORKERS,
    batch_job,
    launcher_pod,
    mpi_job,
)

WAITING = LauncherJob(waits_for_workers=True)
READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
ENDED_AT = NOW - datetime.timedelta(seconds=30)
FILES = Dependent(CONFIG_MAPS, "pi-config", {"data": {"hostfile": ""}})
POD_GROUP = DependentObject(metadata=ObjectMeta(name="pi", namespace="ml"))
SERVICE = Service(metadata=ObjectMeta(name="pi", namespace="ml"))
DESIRED = Desired(
    services=[LAUNCHER],
    dependents=[FILES],
    idle_dependents=[FILES],
    retained_resources=(SERVICES, CONFIG_MAPS),
)


def planned(
    job: Job,
    launcher: BatchJob | None = None,
    *workers: Pod,
    pods: tuple[Pod, ...] = (),
    desired: Desired = DESIRED,
    **children: Any,
) -> Plan:
    found = Children(
        workers, launcher_jobs=[launcher] if launcher else (), launcher_pods=pods, **children
    )
    return plan_job(job, observe(job, found, NOW), desired, NOW, PlanSettings())


def writes(plan: Plan) -> LauncherJobAction | None:
    return plan.launcher_job.action if plan.launcher_job else None


def with_status(job: Job, plan: Plan) -> Job:
    return attrs.evolve(job, status=plan.status)


def running(job: Job, **status: Any) -> list[Pod]:
    return [make_pod(job, worker, state=RUNNING, **status) for worker in WORKERS]


def counts(status: JobStatus, type_: str) -> dict[JobState, int]:
    return next(dict(r.count_by_state) for r in status.replica_statuses if r.type == type_)


def condition(status: JobStatus, type_: str) -> conditions.Condition:
    return next(c for c in status.conditions if c.type == type_)


def test_new_job_gets_everything_at_once() -> None:
    plan = planned(mpi_job())
    assert plan.pods == WORKERS
    assert plan.services == (LAUNCHER,)
    assert plan.dependents.created == (FILES,)
    assert writes(plan) is LauncherJobAction.CREATE


def test_complete_job_needs_no_writes() -> None:
    job = mpi_job()
    pods, launcher = (launcher_pod(),), batch_job()
    found: dict[str, Any] = {"services": [SERVICE], "desired": Desired([LAUNCHER])}
    job = with_status(job, planned(job, launcher, *running(job), pods=pods, **found))
    assert job.status.phase is JobPhase.RUNNING
    assert planned(job, launcher, *running(job), pods=pods, **found) == Plan(job.status)


@pytest.mark.parametrize(
    ("ready", "expected"),
    [(0, None), (1, None), (2, LauncherJobAction.CREATE)],
    ids=["none ready", "one ready", "all ready"],
)
def test_launcher_that_waits_is_created_once_all_workers_are_ready(
    ready: int, expected: LauncherJobAction | None
) -> None:
    job = mpi_job(WAITING)
    pods = [
        make_pod(job, worker, state=RUNNING, **(READY if worker.index < ready else {}))
        for worker in WORKERS
    ]
    assert writes(planned(job, None, *pods)) is expected


def test_launcher_that_waits_stays_suspended_when_its_job_is_resumed() -> None:
    job = mpi_job(WAITING)
    suspended = batch_job(suspended=True)
    assert writes(planned(job, suspended, *running(job))) is None
    assert writes(planned(job, suspended, *running(job, **READY))) is LauncherJobAction.RESUME


def test_pods_do_not_wait_until_their_gang_is_admitted() -> None:
    held = attrs.evolve(DESIRED, hold_reason="the PodGroup is pending")
    plan = planned(mpi_job(), desired=held)
    assert plan.pods == WORKERS
    assert writes(plan) is LauncherJobAction.CREATE
    waiting = conditions.find(plan.status.conditions, conditions.WAITING)
    assert waiting is not None
    assert waiting.reason == "PodGroupNotAdmitted"


def test_job_runs_once_the_launcher_and_all_workers_run() -> None:
    job = mpi_job()
    workers = running(job)
    partly = planned(job, batch_job(), workers[0], pods=(launcher_pod(),))
    assert partly.status.phase is JobPhase.CREATING
    early = planned(job, batch_job(active=1), *workers, pods=(launcher_pod(phase="Pending"),))
    assert early.status.phase is JobPhase.CREATING
    whole = planned(job, batch_job(), *workers, pods=(launcher_pod(),))
    assert conditions.is_true(whole.status.conditions, conditions.RUNNING)


def test_retries_of_the_launcher_are_counted() -> None:
    job = mpi_job()
    failed = launcher_pod("a", "Failed", age_s=9)
    plan = planned(job, batch_job(failed=3), *running(job), pods=(failed, launcher_pod()))
    expected = {JobState.RUNNING: 1, JobState.FAILED: 3}
    assert counts(plan.status, "launcher") == expected


def test_launcher_that_was_deleted_is_created_again() -> None:
    job = with_status(mpi_job(), planned(mpi_job(), batch_job(), *running(mpi_job())))
    assert writes(planned(job, None, *running(job))) is LauncherJobAction.CREATE


def test_success_ends_the_job_when_the_launcher_did() -> None:
    plan = planned(mpi_job(), batch_job(COMPLETE, completionTime=ENDED_AT), *running(mpi_job()))
    assert plan.status.state is JobState.SUCCEEDED
    assert plan.status.completion_time == ENDED_AT
    assert counts(plan.status, "launcher")[JobState.SUCCEEDED] == 1


def test_failure_ends_the_job_now() -> None:
    plan = planned(mpi_job(), batch_job(FAILED, failed=7), *running(mpi_job()))
    assert plan.status.completion_time == NOW
    assert counts(plan.status, "launcher") == {JobState.FAILED: 7}
    message = "Job has reached the specified backoff limit"
    assert condition(plan.status, conditions.FAILED).message == message


def test_failure_names_the_workers_that_failed() -> None:
    job = mpi_job()
    killed = make_pod(job, WORKERS[1], phase="Failed", state=exited(137, reason="OOMKilled"))
    plan = planned(job, batch_job(FAILED), make_pod(job, WORKERS[0], state=RUNNING), killed)
    message = condition(plan.status, conditions.FAILED).message
    assert message.startswith("Job has reached the specified backoff limit; worker-1: OOMKilled")


@pytest.mark.parametrize("policy", list(CleanPodPolicy))
def test_clean_up_deletes_workers_and_pod_group_but_nothing_else(policy: CleanPodPolicy) -> None:
    job = mpi_job(clean_pod_policy=policy)
    done = make_pod(job, WORKERS[0], phase="Succeeded", state=exited(0))
    alive = make_pod(job, WORKERS[1], state=RUNNING)
    plan = planned(
        job,
        batch_job(COMPLETE),
        done,
        alive,
        pods=(launcher_pod(phase="Succeeded"),),
        services=[SERVICE],
        dependents={VOLCANO_POD_GROUPS: [POD_GROUP]},
    )
    expected: dict[CleanPodPolicy, tuple[Pod, ...]] = {
        CleanPodPolicy.ALL: (done, alive),
        CleanPodPolicy.RUNNING: (alive,),
        CleanPodPolicy.NONE: (),
    }
    assert plan.deleted_pods == expected[policy]
    assert plan.deleted_services == ()
    assert bool(plan.dependents.deleted) is (policy is not CleanPodPolicy.NONE)
    assert not plan.dependents.patched
    assert plan.status.phase is (
        JobPhase.DONE if policy is CleanPodPolicy.NONE else JobPhase.CLEAN_UP
    )


def test_job_is_done_once_its_launcher_has_its_ttl() -> None:
    job = mpi_job(LauncherJob(ttl_after_finished_s=60))
    launcher = batch_job(COMPLETE)
    first = planned(job, launcher, *running(job))
    assert first.launcher_job == LauncherJobWrite(LauncherJobAction.SET_TTL, launcher)
    assert first.status.phase is JobPhase.CLEAN_UP
    second = planned(with_status(job, first), batch_job(COMPLETE, ttl_s=60), *running(job))
    assert second.launcher_job is None
    assert second.status.phase is JobPhase.DONE


def test_launcher_of_an_ended_job_is_not_created_again() -> None:
    job = with_status(mpi_job(), planned(mpi_job(), batch_job(COMPLETE)))
    assert job.status.phase is JobPhase.DONE
    assert planned(job).launcher_job is None


def test_suspended_job_has_everything_but_workers() -> None:
    plan = planned(mpi_job(suspended=True))
    assert plan.status.phase is JobPhase.SUSPENDED
    assert plan.status.start_time is None
    assert plan.pods == ()
    assert plan.services == (LAUNCHER,)
    assert plan.dependents.created == (FILES,)
    assert writes(plan) is LauncherJobAction.CREATE_SUSPENDED


def test_suspended_job_counts_a_launcher_that_its_suspension_has_stopped() -> None:
    """The Job counts it once it is gone, which is later."""
    job = with_status(mpi_job(), planned(mpi_job(), batch_job(), *running(mpi_job())))
    job = attrs.evolve(job, run_policy=attrs.evolve(job.run_policy, suspended=True))
    job = with_status(job, planned(job, batch_job()))
    assert counts(job.status, "launcher") == {}
    plan = planned(job, batch_job(suspended=True, failed=1))
    assert counts(plan.status, "launcher") == {JobState.FAILED: 1}
    assert plan.status.phase is JobPhase.SUSPENDED


def test_suspension_deletes_the_workers_and_the_pod_group() -> None:
    job = with_status(mpi_job(), planned(mpi_job(), batch_job(), *running(mpi_job())))
    workers = running(job)
    plan = planned(
        attrs.evolve(job, run_policy=attrs.evolve(job.run_policy, suspended=True)),
        batch_job(),
        *workers,
        pods=(launcher_pod(),),
        services=[SERVICE],
        dependents={VOLCANO_POD_GROUPS: [POD_GROUP]},
    )
    assert plan.deleted_pods == tuple(workers)
    assert plan.deleted_services == ()
    assert plan.dependents.deleted == ((VOLCANO_POD_GROUPS, POD_GROUP),)
    assert writes(plan) is LauncherJobAction.SUSPEND


def test_invalid_job_stops_its_launcher() -> None:
    job = mpi_job(status=JobStatus(phase=JobPhase.FAILED))
    assert writes(planned(job, batch_job())) is LauncherJobAction.SUSPEND


def test_lost_worker_is_replaced_after_a_back_off() -> None:
    job = mpi_job()
    lost = make_pod(job, WORKERS[1], phase="Failed", reason="Evicted", message="memory")
    plan = planned(job, batch_job(), make_pod(job, WORKERS[0], state=RUNNING), lost)
    assert plan.deleted_pods == ()
    assert plan.requeue_after_s == 10
    later = with_status(job, plan)
    found = Children([lost], launcher_jobs=[batch_job()])
    due = NOW + datetime.timedelta(seconds=10)
    replaced = plan_job(later, observe(later, found, due), DESIRED, due, PlanSettings())
    assert replaced.deleted_pods == (lost,)
    assert replaced.pods == (Replica("worker", 0),)


def test_failed_attempts_of_the_launcher_are_recorded_once() -> None:
    job = mpi_job()
    again = {"name": "mpi", "restartCount": 1, "lastState": exited(1), "state": RUNNING}
    pods = (launcher_pod(containerStatuses=[again]),)
    job = with_status(job, planned(job, batch_job(), pods=pods))
    recorded = job.status.restarts["launcher-0"]
    assert (recorded.failures, recorded.exit_code) == (1, 1)
    assert planned(job, batch_job(), pods=pods).status.restarts == job.status.restarts
    later = exited(2, at=NOW + datetime.timedelta(seconds=1))
    pods = (launcher_pod(containerStatuses=[{**again, "lastState": later}]),)
    found = Children(launcher_jobs=[batch_job()], launcher_pods=pods)
    due = NOW + datetime.timedelta(seconds=2)
    plan = plan_job(job, observe(job, found, due), DESIRED, due, PlanSettings())
    assert plan.status.restarts["launcher-0"].consecutive_ends == 2


def test_attempt_of_a_launcher_that_succeeds_unseen_is_recorded() -> None:
    job = mpi_job()
    job = attrs.evolve(job, status=attrs.evolve(job.status, start_time=NOW))
    failed = {"name": "mpi", "state": exited(1)}
    first = launcher_pod("a", "Failed", containerStatuses=[failed])
    job = with_status(job, planned(job, batch_job(), pods=(first,)))
    second = launcher_pod("b", "Succeeded", age_s=-7)
    found = Children(launcher_jobs=[batch_job(COMPLETE)], launcher_pods=(first, second))
    due = NOW + datetime.timedelta(seconds=9)
    plan = plan_job(job, observe(job, found, due), DESIRED, due, PlanSettings())
    before, after = plan.status.attempts
    assert (before.end_time, before.lost_s) == (NOW, 7)
    assert (after.start_time, after.end_time) == (NOW + datetime.timedelta(seconds=7), due)


@pytest.mark.parametrize(
    ("lost", "reason", "message"),
    [
        pytest.param(
            {"reason": "Evicted", "message": "disk"},
            "MPIJobEvicted",
            "1/2 workers are evicted",
            id="evicted",
        ),
        pytest.param(
            {"state": exited(1)},
            "MPIJobRestarting",
            "MPIJob ml/pi is restarting worker-1: Error, exit code 1 (general error)",
            id="failed",
        ),
    ],
)
def test_job_is_not_running_while_a_failed_worker_is_replaced(
    lost: dict[str, Any], reason: str, message: str
) -> None:
    job = make_job(v2beta1.mpi_job())
    pods = (launcher_pod(),)
    job = with_status(job, planned(job, batch_job(), *running(job), pods=pods))
    assert conditions.is_true(job.status.conditions, conditions.RUNNING)
    failed = make_pod(job, WORKERS[1], phase="Failed", **lost)
    plan = planned(job, batch_job(), running(job)[0], failed, pods=pods)
    found = condition(plan.status, conditions.RUNNING)
    assert (found.status, found.reason, found.message) == (False, reason, message)
    assert EventNote("Warning", reason, message) in plan.notes
    job = with_status(job, plan)
    assert not planned(job, batch_job(), running(job)[0], failed, pods=pods).notes
    job = with_status(job, planned(job, batch_job(), *running(job), pods=pods))
    assert conditions.is_true(job.status.conditions, conditions.RUNNING)


def test_job_keeps_running_while_its_launcher_is_retried_or_a_worker_was_deleted() -> None:
    job = make_job(v2beta1.mpi_job())
    job = with_status(job, planned(job, batch_job(), *running(job), pods=(launcher_pod(),)))
    waiting = (launcher_pod("b", "Pending"),)
    plan = planned(job, batch_job(failed=1), running(job)[0], pods=waiting)
    assert conditions.is_true(plan.status.conditions, conditions.RUNNING)
    assert counts(plan.status, "launcher") == {JobState.FAILED: 1}


def test_launcher_of_a_lost_node_is_force_deleted() -> None:
    leaving = launcher_pod(metadata={"deletionTimestamp": NOW - datetime.timedelta(minutes=2)})
    found = Children(launcher_jobs=[batch_job()], launcher_pods=[leaving])
    job = mpi_job()
    plan = plan_job(
        job, observe(job, found, NOW), DESIRED, NOW, PlanSettings(force_delete_after_s=60)
    )
    assert plan.force_deleted_pods == (leaving,)
