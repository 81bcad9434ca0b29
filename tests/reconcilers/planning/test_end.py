"""Plans of jobs that have ended before: their clean-up, and what appears afterwards."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.meta import UID, ObjectMeta
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.pod_groups import VOLCANO_POD_GROUPS
from dlctl.api.objects.pods import Service
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.status.job_status import Failure, JobPhase, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.lifecycle.cleanup import policy_at_end
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.restart_attempts import RESTART_ATTEMPT
from tests.builders import NOW, RUNNING, exited, make_job, make_pod
from tests.reconcilers.failures.torch_jobs import at, planned, running, torch_job

SCHEDULER, WORKER = Replica("scheduler", 0), Replica("worker", 0)


def _service(job: Job, replica: Replica, created: datetime.datetime = NOW) -> Service:
    name = job.child_name(replica)
    return Service(
        metadata=ObjectMeta(name=name, namespace="ml", uid=UID(name), creation_timestamp=created)
    )


@pytest.mark.parametrize("created_s", [-1, 0, 1, 8])
def test_child_that_appears_after_the_end_is_deleted(created_s: int) -> None:
    job = make_job()
    status = JobStatus(phase=JobPhase.DONE, completion_time=NOW)
    job = attrs.evolve(job, status=status)
    created = NOW + datetime.timedelta(seconds=created_s)
    metadata = {"uid": "pod", "creationTimestamp": created.isoformat()}
    pod = make_pod(job, WORKER, state=RUNNING, metadata=metadata)
    service, now = _service(job, SCHEDULER, created), NOW + datetime.timedelta(seconds=10)
    earlier = {"uid": "earlier", "creationTimestamp": at(-60).isoformat()}
    kept = make_pod(job, Replica("worker", 1), state=RUNNING, metadata=earlier)
    observed = observe(job, Children([pod, kept], [service]), now)
    made = plan_job(job, observed, Desired((SCHEDULER,)), now, PlanSettings())
    # What was there before may have been kept, as for a sidecar.
    deleted = ((), ()) if created_s <= 0 else ((pod,), (service,))
    assert (made.deleted_pods, made.deleted_services) == deleted


@pytest.mark.parametrize("policy", ["None", "Running"])
@pytest.mark.parametrize("is_partial", [False, True])
def test_children_of_a_scale_down_are_deleted_although_the_job_ends(
    policy: str, *, is_partial: bool
) -> None:
    job = make_job(workers=3, cleanupPodPolicy=policy)
    smaller = attrs.evolve(make_job(workers=1, cleanupPodPolicy=policy), is_partial=is_partial)
    # All have ended, so that either policy keeps them.
    pods = [make_pod(job, replica, state=exited(0)) for replica in job.replicas]
    services = [_service(job, replica) for replica in job.replicas]
    observed = observe(smaller, Children(pods, services), NOW)
    wanted = Desired(() if is_partial else tuple(smaller.replicas))
    made = plan_job(smaller, observed, wanted, NOW, PlanSettings())
    assert made.status.completion_time is not None
    # Of a spec that cannot be read in full, the number is not known.
    surplus = [] if is_partial else [job.child_name(Replica("worker", n)) for n in (1, 2)]
    assert [pod.metadata.name for pod in made.deleted_pods] == surplus
    if policy == "None" or not is_partial:
        assert [one.metadata.name for one in made.deleted_services] == surplus
    # As if the controller had ended between the status and the deletions.
    ended = attrs.evolve(smaller, status=made.status)
    again = plan_job(ended, observed, wanted, NOW, PlanSettings())
    assert (again.deleted_pods, again.deleted_services) == (
        made.deleted_pods,
        made.deleted_services,
    )


def test_pods_without_a_replica_stay_if_the_job_was_scaled_down_after_its_end() -> None:
    status = JobStatus(JobPhase.DONE, completion_time=NOW, observed_generation=1)
    job = make_job(workers=3, cleanupPodPolicy="None")
    pods = [make_pod(job, replica, state=exited(0)) for replica in job.replicas]
    smaller = attrs.evolve(
        make_job(workers=1, cleanupPodPolicy="None"), status=status, generation=2
    )
    made = plan_job(
        smaller, observe(smaller, Children(pods, []), NOW), Desired(()), NOW, PlanSettings()
    )
    assert (made.deleted_pods, made.status.phase) == ((), JobPhase.DONE)


def _cleaning_up(**fields: Any) -> Job:
    status = JobStatus(JobPhase.CLEAN_UP, completion_time=NOW)
    return attrs.evolve(make_job(cleanupPodPolicy="Running"), status=status, **fields)


def test_services_go_together_with_the_pods_that_still_run() -> None:
    job = _cleaning_up()
    done = make_pod(job, SCHEDULER, state=exited(0))
    runs = make_pod(job, WORKER, state=RUNNING)
    services = [_service(job, replica) for replica in (SCHEDULER, WORKER)]
    observed = observe(job, Children([done, runs], services), NOW)
    made = plan_job(job, observed, Desired((SCHEDULER, WORKER)), NOW, PlanSettings())
    assert (made.deleted_pods, made.deleted_services) == ((runs,), (services[1],))


def test_job_is_not_done_before_its_pod_group_is_deleted() -> None:
    job = _cleaning_up(generation=3)
    group = DependentObject(metadata=ObjectMeta(name="linear", namespace="ml", uid=UID("group")))
    observed = observe(job, Children(dependents={VOLCANO_POD_GROUPS: [group]}), NOW)
    made = plan_job(job, observed, Desired(()), NOW, PlanSettings())
    assert [found for _, found in made.dependents.deleted] == [group]
    assert made.status.phase is JobPhase.CLEAN_UP
    # Another operator's status has none, and an edit after the end is noticed by it.
    assert made.status.observed_generation == 3


@pytest.mark.parametrize(
    ("failure", "run_policy", "is_deleted"),
    [
        pytest.param(("", "DeadlineExceeded"), RunPolicy(), True, id="deadline"),
        pytest.param(("", "StartingDeadlineExceeded"), RunPolicy(), True, id="start"),
        pytest.param(("", "BackoffLimitExceeded"), RunPolicy(), True, id="failures"),
        pytest.param(("", "ReachedMaxRestarts"), RunPolicy(), True, id="restarts"),
        pytest.param(("worker-0", "Error"), RunPolicy(backoff_limit=0), True, id="no failures"),
        pytest.param(("worker-0", "Error"), RunPolicy(backoff_limit=1), False, id="exit code"),
        pytest.param(("", "Invalid"), RunPolicy(backoff_limit=0), False, id="other failure"),
        pytest.param(("worker-0", "DeadlineExceeded"), RunPolicy(), False, id="pod's deadline"),
    ],
)
def test_pods_run_on_unless_a_limit_of_the_job_is_exceeded(
    failure: tuple[str, str], run_policy: RunPolicy, is_deleted: bool
) -> None:
    replica, reason = failure
    failed = Failure(replica=replica, pod="", reason=reason, message="", time=NOW)
    status = JobStatus(phase=JobPhase.CLEAN_UP, completion_time=NOW, failure=failed)
    assert run_policy.clean_pod_policy is CleanPodPolicy.NONE
    job = attrs.evolve(make_job(), status=status, run_policy=run_policy)
    pod = make_pod(job, WORKER, state=RUNNING)
    observed = observe(job, Children([pod], []), NOW)
    made = plan_job(job, observed, Desired((SCHEDULER, WORKER)), NOW, PlanSettings())
    assert made.deleted_pods == ((pod,) if is_deleted else ())


@pytest.mark.parametrize(
    ("phase", "is_deleted"),
    [
        pytest.param(JobPhase.DONE, False, id="cleaned up, and the limit set since"),
        pytest.param(JobPhase.CLEAN_UP, True, id="the limit exceeded, and edited meanwhile"),
    ],
)
def test_limit_of_0_that_is_set_after_the_cleanup_deletes_nothing(
    phase: JobPhase, *, is_deleted: bool
) -> None:
    failure = Failure("worker-0", "", "Error", "", NOW)
    status = JobStatus(phase, completion_time=NOW, failure=failure, observed_generation=1)
    job = attrs.evolve(
        make_job(), status=status, run_policy=RunPolicy(backoff_limit=0), generation=2
    )
    pod = make_pod(job, WORKER, state=RUNNING)
    made = plan_job(
        job,
        observe(job, Children([pod], []), NOW),
        Desired((SCHEDULER, WORKER)),
        NOW,
        PlanSettings(),
    )
    assert made.deleted_pods == ((pod,) if is_deleted else ())


def test_limit_of_an_elastic_job_keeps_its_workers() -> None:
    failed = Failure("", "", "BackoffLimitExceeded", "", NOW)
    job = attrs.evolve(make_job(), run_policy=RunPolicy(), elasticity=Elasticity())
    assert policy_at_end(job, failed) is CleanPodPolicy.NONE


@pytest.mark.parametrize("policy", ["None", "Running"])
def test_pod_to_blame_stays_if_the_job_ends_before_its_next_attempt(policy: str) -> None:
    limits = {"activeDeadlineSeconds": 60, "failurePolicy": {"maxRestarts": 5}}
    job = running(torch_job("OnFailure", cleanPodPolicy=policy, **limits))
    label = {"labels": {RESTART_ATTEMPT: "0"}}
    found = [
        make_pod(job, WORKER, phase="Failed", state=exited(1, at=at(50)), metadata=label),
        make_pod(job, Replica("master", 0), state=RUNNING, metadata=label),
    ]
    for seconds in (51, 52, 53, 54):
        made = planned(job, found, seconds)
        deleted = {pod.metadata.name for pod in made.deleted_pods}
        job = attrs.evolve(job, status=made.status)
        found = [pod for pod in found if pod.metadata.name not in deleted]
    assert job.status.phase is JobPhase.RESTARTING
    ended = planned(job, found, 60)
    assert ended.status.failure is not None
    assert [pod.metadata.name for pod in found] == [job.child_name(WORKER)]
    assert ended.deleted_pods == ()


def test_ended_pods_stay_if_an_edit_after_the_end_also_removes_their_replicas() -> None:
    status = JobStatus(JobPhase.DONE, completion_time=NOW, observed_generation=1)
    job = make_job(workers=3)
    smaller = make_job(workers=1, cleanupPodPolicy="Running")
    smaller = attrs.evolve(smaller, status=status, generation=2)
    pods = [
        make_pod(job, r, state=exited(0) if r.type == "worker" else RUNNING) for r in job.replicas
    ]
    deleted = []
    for _ in range(3):
        observed = observe(smaller, Children(pods, []), NOW)
        made = plan_job(smaller, observed, Desired(()), NOW, PlanSettings())
        deleted += [pod.metadata.name for pod in made.deleted_pods]
        pods = [pod for pod in pods if pod not in made.deleted_pods]
        smaller = attrs.evolve(smaller, status=made.status)
    assert smaller.status.phase is JobPhase.DONE
    assert job.child_name(SCHEDULER) in deleted
    assert not [name for name in deleted if "worker" in name]
