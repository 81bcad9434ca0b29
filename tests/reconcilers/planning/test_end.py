"""Plans of jobs that have ended before: their clean-up, and what appears afterwards."""

import datetime

import attrs
import pytest

from dlctl.api.job import Replica
from dlctl.api.meta import UID, ObjectMeta
from dlctl.api.objects.pods import Service
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.status.job_status import Failure, JobPhase, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.lifecycle.cleanup import policy_at_end
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.planning.job import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, make_job, make_pod

SCHEDULER, WORKER = Replica("scheduler", 0), Replica("worker", 0)


@pytest.mark.parametrize("created_s", [-1, 0, 1, 8])
def test_child_that_appears_after_the_end_is_deleted(created_s: int) -> None:
    job = make_job()
    status = JobStatus(phase=JobPhase.DONE, completion_time=NOW)
    job = attrs.evolve(job, status=status)
    created = NOW + datetime.timedelta(seconds=created_s)
    metadata = {"uid": "pod", "creationTimestamp": created.isoformat()}
    pod = make_pod(job, WORKER, state=RUNNING, metadata=metadata)
    name = job.child_name(SCHEDULER)
    own = ObjectMeta(name=name, namespace="ml", uid=UID("one"), creation_timestamp=created)
    service, now = Service(metadata=own), NOW + datetime.timedelta(seconds=10)
    observed = observe(job, Children([pod], [service]), now)
    made = plan_job(job, observed, Desired((SCHEDULER,)), now, PlanSettings())
    # What was there before may have been kept, as for a sidecar.
    deleted = ((), ()) if created_s <= 0 else ((pod,), (service,))
    assert (made.deleted_pods, made.deleted_services) == deleted


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
