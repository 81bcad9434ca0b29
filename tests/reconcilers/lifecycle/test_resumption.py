"""Resumption of a job with a failure policy: no pod of the suspended run meets one of the next."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, make_job, make_pod, training_job

MASTER, FIRST, SECOND = Replica("master", 0), Replica("worker", 0), Replica("worker", 1)
GRACE_S = 60


def at(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def torch_job(policy: dict[str, Any] | None, before: Job | None = None, **fields: Any) -> Job:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    run_policy = {"failurePolicy": policy} if policy is not None else {}
    manifest["spec"]["runPolicy"] = {**run_policy, **fields}
    job = make_job(manifest)
    return attrs.evolve(job, status=before.status) if before else job


def pod(job: Job, replica: Replica, created: float = 1, deleted: float | None = None) -> Pod:
    metadata: dict[str, Any] = {"creationTimestamp": at(created).isoformat()}
    if job.run_policy.failure_policy is not None:
        metadata["labels"] = {"dlctl.dev/restart-attempt": str(job.status.job_restarts)}
    if deleted is not None:
        metadata["deletionTimestamp"] = at(deleted + GRACE_S).isoformat()
        metadata["deletionGracePeriodSeconds"] = GRACE_S
    return make_pod(job, replica, state=RUNNING, restart_policy="Never", metadata=metadata)


def planned(job: Job, pods: list[Pod], seconds: float) -> Plan:
    now = at(seconds)
    desired = Desired(tuple(job.replicas))
    return plan_job(job, observe(job, Children(pods), now), desired, now, PlanSettings())


def after(job: Job, pods: list[Pod], seconds: float) -> Job:
    return attrs.evolve(job, status=planned(job, pods, seconds).status)


def suspended_at_10(policy: dict[str, Any] | None) -> Job:
    """Return a job that ran and is suspended, before its pods are gone."""
    job = after(torch_job(policy), [], 0)
    pods = [pod(job, replica) for replica in job.replicas]
    job = torch_job(policy, after(job, pods, 2), suspend=True)
    assert len(planned(job, pods, 10).deleted_pods) == 3
    return after(job, pods, 10)


def test_resumed_job_waits_for_all_pods_of_the_suspended_run() -> None:
    job = torch_job({}, suspended_at_10({}))
    left = [pod(job, MASTER, deleted=10), pod(job, FIRST, deleted=10)]
    resumed = planned(job, left, 15)
    assert (resumed.status.phase, resumed.status.start_time) == (JobPhase.CREATING, at(15))
    assert resumed.pods == ()
    job = torch_job({}, attrs.evolve(job, status=resumed.status))
    for pods in (left, left[:1]):
        again = planned(job, pods, 20)
        assert (again.pods, again.deleted_pods, again.status) == ((), (), job.status)
    assert planned(job, [], 70).pods == (MASTER, FIRST, SECOND)


@pytest.mark.parametrize("second", [10, 11])
def test_suspension_and_resumption_within_a_second_are_a_barrier_too(second: int) -> None:
    job = torch_job({}, suspended_at_10({}))
    # The server's clock is a second ahead of the controller's.
    left = [pod(job, MASTER, deleted=second)]
    job = torch_job({}, after(job, left, 10))
    assert planned(job, left, 12).pods == ()


def test_pod_that_the_suspension_did_not_delete_is_deleted_before_the_job_resumes() -> None:
    job = torch_job({}, suspended_at_10({}))
    # The controller ended between the write of the status and the deletions.
    pods = [pod(job, MASTER), pod(job, FIRST, deleted=10)]
    plan = planned(job, pods, 15)
    assert plan.status.phase is JobPhase.SUSPENDED
    assert plan.deleted_pods == (pods[0],)
    assert plan.pods == ()


def test_replicas_of_a_resumed_job_are_replaced_without_waiting_for_each_other() -> None:
    policy = {"rules": [{"action": "RestartReplica"}]}
    job = torch_job(policy, after(torch_job(policy, suspended_at_10(policy)), [], 15))
    new = [pod(job, MASTER, created=16), pod(job, FIRST, created=16, deleted=20)]
    assert planned(job, new, 21).pods == (SECOND,)


@pytest.mark.parametrize("policy", [None, {"restartStrategy": "Recreate"}])
def test_others_create_each_pod_as_soon_as_its_name_is_free(policy: dict[str, Any] | None) -> None:
    job = torch_job(policy, suspended_at_10(policy))
    left = [pod(job, MASTER, deleted=10), pod(job, FIRST, deleted=10)]
    assert planned(job, left, 15).pods == (SECOND,)
    job = torch_job(policy, after(job, left, 15))
    assert planned(job, left, 20).pods == (SECOND,)
