"""Plans: which children are created and deleted, when to requeue, when a job is done."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.meta import ObjectMeta
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.status import invalid_status
from tests.builders import NOW, RUNNING, exited, make_job, make_pod

SCHEDULER, SERVER = Replica("scheduler", 0), Replica("server", 0)
FIRST, SECOND = Replica("worker", 0), Replica("worker", 1)
SERVED = (SCHEDULER,)
SETTINGS = PlanSettings()
IMPATIENT = PlanSettings(force_delete_after_s=60)
FAILED_RETRYABLE: dict[str, Any] = {"phase": "Failed", "state": exited(137)}
LEAVING = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 0}
TERMINATING = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 30}


def seconds(after: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=after)


def service(job: Job, replica: Replica = SCHEDULER) -> Service:
    return Service(metadata=ObjectMeta(name=job.child_name(replica), namespace="ml"))


def planned(
    job: Job,
    *pods: Pod,
    services: tuple[Service, ...] = (),
    now: datetime.datetime = NOW,
    settings: PlanSettings = SETTINGS,
) -> Plan:
    observed = observe(job, Children(pods, services), now)
    return plan_job(job, observed, Desired(SERVED), now, settings)


def applied(job: Job, made: Plan) -> Job:
    return attrs.evolve(job, status=made.status)


def whole(job: Job, **states: dict[str, Any]) -> list[Pod]:
    """Return running pods of all replicas but for those whose state is given by name."""
    return [
        make_pod(job, replica, **states.get(str(replica).replace("-", ""), {"state": RUNNING}))
        for replica in job.replicas
    ]


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_new_job_gets_its_service_and_all_its_pods() -> None:
    job = make_job()
    made = planned(job)
    assert made.services == (SCHEDULER,)
    assert made.pods == tuple(job.replicas)
    assert made.requeue_after_s is None


def test_complete_job_needs_no_writes() -> None:
    job = make_job()
    pods, services = whole(job), (service(job),)
    running = applied(job, planned(job, *pods, services=services))
    assert planned(running, *pods, services=services) == Plan(running.status)


def test_local_job_gets_one_pod_and_no_service() -> None:
    job = make_job(jobMode="local", workers=4)
    observed = observe(job, Children(), NOW)
    made = plan_job(job, observed, Desired(), NOW, SETTINGS)
    assert (made.services, made.pods) == ((), (FIRST,))


def test_pod_deleted_by_others_is_recreated_at_once() -> None:
    job = applied(make_job(), planned(make_job(), *whole(make_job())))
    made = planned(job, *whole(job)[:-1])
    assert made.pods == (SECOND,)
    assert made.status.restarts == {}


def test_replica_with_a_terminating_pod_waits_for_its_name() -> None:
    job = make_job()
    made = planned(job, *whole(job, worker0={"state": RUNNING, "metadata": LEAVING}))
    assert (made.pods, made.deleted_pods) == ((), ())


def test_stuck_terminating_pod_is_force_deleted_after_its_time() -> None:
    job = make_job()
    pods = whole(job, worker0={"state": RUNNING, "metadata": TERMINATING})
    waiting = planned(job, *pods, settings=IMPATIENT)
    # First it is reported.
    assert (waiting.force_deleted_pods, waiting.requeue_after_s) == ((), 30)
    reported = planned(job, *pods, now=seconds(30), settings=IMPATIENT)
    assert (reported.force_deleted_pods, reported.requeue_after_s) == ((), 30)

    over = planned(job, *pods, now=seconds(60.4), settings=IMPATIENT)
    assert names(over.force_deleted_pods) == [job.child_name(FIRST)]
    # The name stays taken until the store shows the deletion.
    assert (over.pods, over.deleted_pods, over.requeue_after_s) == ((), (), None)

    gone = planned(
        job, *(pod for pod in pods if pod not in over.force_deleted_pods), settings=IMPATIENT
    )
    assert gone.pods == (FIRST,)
    assert gone.status.restarts == {}


def test_stuck_terminating_pod_is_kept_without_the_setting() -> None:
    job = make_job()
    pods = whole(job, worker0={"state": RUNNING, "metadata": TERMINATING})
    made = planned(job, *pods, now=seconds(1e6))
    assert (made.force_deleted_pods, made.requeue_after_s) == ((), None)


def test_stuck_surplus_pod_is_force_deleted_too() -> None:
    pods = whole(make_job(), worker1={"state": RUNNING, "metadata": TERMINATING})
    made = planned(make_job(workers=1), *pods, now=seconds(60), settings=IMPATIENT)
    assert made.force_deleted_pods == (pods[-1],)


@pytest.mark.parametrize("policy", ["All", "None"])
def test_stuck_pod_of_a_finished_job_is_force_deleted_too(
    policy: str,
) -> None:
    job = make_job(cleanupPodPolicy=policy)
    job = attrs.evolve(job, status=JobStatus(phase=JobPhase.DONE, state=JobState.SUCCEEDED))
    stuck = make_pod(job, SERVER, state=RUNNING, metadata=TERMINATING)
    assert planned(job, stuck, settings=IMPATIENT) == Plan(job.status, requeue_after_s=60)
    over = planned(job, stuck, now=seconds(60), settings=IMPATIENT)
    assert over == Plan(job.status, force_deleted_pods=(stuck,))


def test_clean_up_does_not_force_delete_at_first() -> None:
    job = make_job()
    job = applied(job, planned(job, *whole(job, scheduler0={"state": exited(0)})))
    stuck = make_pod(job, FIRST, state=RUNNING, metadata=TERMINATING)
    made = planned(job, stuck, now=seconds(9), settings=IMPATIENT)
    assert (made.status.phase, made.requeue_after_s) == (JobPhase.DONE, 51)


def test_requeue_is_at_the_earliest_deadline() -> None:
    job = make_job()
    pods = whole(job, worker0=FAILED_RETRYABLE, worker1={"state": RUNNING, "metadata": TERMINATING})
    assert planned(job, *pods, settings=IMPATIENT).requeue_after_s == 10
    due = planned(applied(job, planned(job, *pods)), *pods, now=seconds(10), settings=IMPATIENT)
    assert due.requeue_after_s == 20


def test_failed_pod_is_kept_until_its_restart_is_due() -> None:
    job = make_job()
    pods = whole(job, worker0=FAILED_RETRYABLE)
    first = planned(job, *pods)
    assert (first.deleted_pods, first.pods) == ((), ())
    assert first.requeue_after_s == 10

    later = planned(applied(job, first), *pods, now=seconds(4))
    assert (later.deleted_pods, later.requeue_after_s) == ((), 6)

    due = planned(applied(job, first), *pods, now=seconds(10))
    assert names(due.deleted_pods) == [job.child_name(FIRST)]
    assert due.pods == ()
    assert due.requeue_after_s is None


def test_replica_whose_failed_pod_was_deleted_early_still_waits_for_its_backoff() -> None:
    job = make_job()
    job = applied(job, planned(job, *whole(job, worker1=FAILED_RETRYABLE)))
    rest = whole(job)[:-1]
    early = planned(job, *rest, now=seconds(3))
    assert (early.pods, early.requeue_after_s) == ((), 7)
    assert planned(job, *rest, now=seconds(10)).pods == (SECOND,)


def test_requeue_is_at_the_next_restart() -> None:
    job = make_job()
    earlier = {"phase": "Failed", "state": exited(137, at=seconds(-4))}
    made = planned(job, *whole(job, worker0=FAILED_RETRYABLE, worker1=earlier))
    assert made.requeue_after_s == 6


def test_worker_that_exited_0_is_not_restarted_even_without_its_pod() -> None:
    job = make_job()
    job = applied(job, planned(job, *whole(job, worker1={"state": exited(0)})))
    assert planned(job, *whole(job)[:-1], services=(service(job),)) == Plan(job.status)


def test_scale_down_deletes_surplus_children() -> None:
    job = make_job(workers=2)
    pods = whole(job)
    made = planned(make_job(workers=1), *pods)
    assert names(made.deleted_pods) == [job.child_name(SECOND)]


def test_service_that_is_no_longer_needed_is_deleted() -> None:
    job = make_job()
    surplus = service(job, SECOND)
    made = planned(job, *whole(job), services=(service(job), surplus))
    assert made.deleted_services == (surplus,)


def test_scale_up_creates_missing_children() -> None:
    pods = whole(make_job(workers=1))
    assert planned(make_job(workers=2), *pods).pods == (SECOND,)


@pytest.mark.parametrize(
    ("policy", "removed", "services_too"),
    [
        pytest.param("All", ["scheduler-0", "server-0", "worker-0", "worker-1"], True, id="all"),
        pytest.param("Running", ["server-0", "worker-0"], False, id="running"),
        pytest.param("None", [], False, id="none"),
    ],
)
def test_clean_up_follows_the_clean_pod_policy(
    policy: str, removed: list[str], services_too: bool
) -> None:
    job = make_job(cleanupPodPolicy=policy)
    pods = whole(
        job,
        scheduler0={"phase": "Succeeded", "state": exited(0)},
        worker1={"phase": "Succeeded", "state": exited(0)},
    )
    ended = planned(job, *pods, services=(service(job),))
    by_name = {job.child_name(replica): str(replica) for replica in job.replicas}
    assert [by_name[name] for name in names(ended.deleted_pods)] == removed
    assert bool(ended.deleted_services) is services_too
    assert ended.status.state is JobState.SUCCEEDED
    assert ended.status.phase is (JobPhase.CLEAN_UP if removed else JobPhase.DONE)
    assert [note.reason for note in ended.notes] == ["MXJobSucceeded"]


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
def test_clean_up_finishes_once(policy: str) -> None:
    job = make_job(cleanupPodPolicy=policy)
    pods = tuple(whole(job, scheduler0={"phase": "Succeeded", "state": exited(0)}))
    services: tuple[Service, ...] = (service(job),)
    notes: list[str] = []
    for _ in range(4):
        made = planned(job, *pods, services=services)
        notes += [note.reason for note in made.notes]
        pods = tuple(pod for pod in pods if pod not in made.deleted_pods)
        services = tuple(one for one in services if one not in made.deleted_services)
        job = applied(job, made)
    assert job.status.phase is JobPhase.DONE
    assert notes == ["MXJobSucceeded"]
    assert planned(job, *pods, services=services) == Plan(job.status)


def test_clean_up_is_done_once_the_remaining_pods_are_terminating() -> None:
    job = make_job()
    job = applied(job, planned(job, *whole(job, scheduler0={"state": exited(0)})))
    assert job.status.phase is JobPhase.CLEAN_UP
    leaving = make_pod(job, FIRST, state=RUNNING, metadata=LEAVING)
    assert planned(job, leaving).status.phase is JobPhase.DONE


def test_clean_up_deletes_surplus_pods_too() -> None:
    job = make_job(workers=1)
    surplus = make_pod(job, Replica("worker", 9), state=RUNNING)
    made = planned(job, surplus, *whole(job, scheduler0={"state": exited(0)}))
    assert surplus in made.deleted_pods


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(None, id="all pods gone"),
        pytest.param(RUNNING, id="pods running"),
        pytest.param(exited(1), id="pods failing"),
        pytest.param(exited(0), id="pods succeeding"),
    ],
)
@pytest.mark.parametrize("policy", ["All", "None"])
def test_finished_job_needs_no_writes_whatever_its_pods_do(
    state: dict[str, Any] | None, policy: str
) -> None:
    job = make_job(cleanupPodPolicy=policy)
    done = JobStatus(phase=JobPhase.DONE, state=JobState.SUCCEEDED)
    job = attrs.evolve(job, status=done)
    pods = [make_pod(job, replica, state=state) for replica in job.replicas] if state else []
    assert planned(job, *pods) == Plan(done)


def test_failure_is_in_the_status_of_the_plan_that_deletes_pods() -> None:
    job = make_job()
    made = planned(job, *whole(job, worker0={"state": exited(1)}))
    assert made.status.phase is JobPhase.CLEAN_UP
    assert made.status.failure is not None
    assert made.status.failure.replica == "worker-0"
    assert len(made.deleted_pods) == 4
    assert (made.pods, made.services) == ((), ())


def test_permanent_exit_fails_the_job_though_the_kubelet_runs_the_container_again() -> None:
    job = make_job()
    made = planned(job, *whole(job, server0={"state": RUNNING, "last_state": exited(1)}))
    assert made.status.state is JobState.FAILED


def test_late_success_of_the_chief_does_not_revive_a_failed_job() -> None:
    job = make_job()
    job = applied(job, planned(job, *whole(job, worker0={"state": exited(1)})))
    made = planned(job, *whole(job, scheduler0={"state": exited(0)}))
    assert made.status.state is JobState.FAILED


def test_job_that_failed_before_it_ran_has_no_children_and_is_not_revived() -> None:
    job = make_job(runPolicy={"ttlSecondsAfterFinished": 60})
    failed = invalid_status.invalid_plan(job, "spec: is wrong", NOW).status
    job = attrs.evolve(job, status=failed)
    left = make_pod(job, FIRST, state=RUNNING)
    made = planned(job, left)
    assert (made.status, made.deleted_pods, made.requeue_after_s) == (failed, (left,), 60.0)

    corrected = planned(attrs.evolve(job, generation=2))
    assert (corrected.status, corrected.pods, corrected.services) == (failed, (), ())
    assert planned(job, now=NOW + datetime.timedelta(seconds=60)).ttl_expired


def test_partially_decoded_job_can_end_but_gets_no_writes() -> None:
    job = applied(make_job(), planned(make_job(), *whole(make_job())))
    part = attrs.evolve(job, is_partial=True, invalid_reason="spec: is wrong")
    surplus = make_pod(job, Replica("evaluator", 0), state=RUNNING)
    made = planned(part, make_pod(job, FIRST, state=RUNNING), surplus)
    assert (made.pods, made.services, made.deleted_pods, made.deleted_services) == ((),) * 4
    assert not made.dependents

    ended = planned(part, make_pod(job, SCHEDULER, state=exited(0)), surplus)
    assert ended.status.state is JobState.SUCCEEDED
