"""Jobs with a failure policy that are scaled: pods that dlctl deletes end no attempt."""

from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Cause
from tests.reconcilers.failures.policy_jobs import ANY_REPLICA, end_of, torch, without
from tests.reconcilers.failures.torch_jobs import after, at, causes, planned, pods

LEAVING = {"deletionTimestamp": at(75).isoformat(), "deletionGracePeriodSeconds": 45}


def scaled(job: Job, workers: int) -> Job:
    def with_count(spec: ReplicaSpec) -> ReplicaSpec:
        return attrs.evolve(spec, replicas=workers) if spec.type == "worker" else spec

    return attrs.evolve(job, replica_specs=tuple(map(with_count, job.replica_specs)))


def terminating(uid: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, **LEAVING}, **fields}


def scaled_down_and_up(**states: Any) -> tuple[Job, list[Pod]]:
    """Return a job that is scaled up again while the pod of worker-1 still terminates."""
    job = torch(ANY_REPLICA)
    plan = planned(scaled(job, 1), pods(job), 30)
    assert [pod.metadata.name for pod in plan.deleted_pods] == ["linear-worker-1"]
    found = pods(job, worker1=terminating("a-worker-1"), **states)
    job = after(scaled(attrs.evolve(job, status=plan.status), 1), found, 31)
    return scaled(job, 2), found


def test_scale_down_and_up_within_the_grace_period_ends_no_attempt() -> None:
    job, found = scaled_down_and_up()
    for seconds in (32, 33, 50):
        job = after(job, found, seconds)
    assert causes(job) == []
    assert end_of(job) == (JobPhase.RUNNING, 0, 0)
    plan = planned(job, without(found, "worker-1"), 60)
    assert [str(replica) for replica in plan.pods] == ["worker-1"]
    assert causes(attrs.evolve(job, status=plan.status)) == []


def test_pod_that_another_client_deletes_meanwhile_ends_the_attempt() -> None:
    job, _ = scaled_down_and_up()
    found = pods(job, worker1=terminating("a-worker-1"), worker0=terminating("a-worker-0"))
    assert causes(after(job, found, 32)) == [(Cause.PLATFORM, "worker-0")]


def test_replacement_that_another_client_deletes_ends_the_attempt() -> None:
    job, found = scaled_down_and_up()
    job = after(job, without(found, "worker-1"), 60)
    assert job.status.scaled_down == {}
    job = after(job, pods(job, "b"), 62)
    job = after(job, pods(job, "b", worker1=terminating("b")), 63)
    assert causes(job) == [(Cause.PLATFORM, "worker-1")]


def test_scale_down_is_recorded_until_its_pods_are_gone() -> None:
    job = scaled(torch(ANY_REPLICA), 4)
    found = pods(job)
    job = after(scaled(job, 1), found, 30)
    assert job.status.scaled_down == {"worker": frozenset({1, 2, 3})}
    # One status for many pods that end one by one.
    job = after(job, without(found, "worker-1", "worker-3"), 40)
    assert job.status.scaled_down == {"worker": frozenset({1, 2, 3})}
    job = after(job, without(found, "worker-1", "worker-2", "worker-3"), 50)
    assert job.status.scaled_down == {}


@pytest.mark.parametrize("names", [("linear-worker-07",), ("linear-worker-x", "linear-other-1")])
def test_pods_of_no_replica_are_not_recorded(names: tuple[str, ...]) -> None:
    job = torch(ANY_REPLICA)
    found = pods(job)
    others = [pods(job, master0={"metadata": {"name": name, "uid": name}})[0] for name in names]
    assert after(job, [*found, *others], 30).status.scaled_down == {}


def test_jobs_without_a_failure_policy_record_no_scale_down() -> None:
    job = torch(ANY_REPLICA)
    run_policy = attrs.evolve(job.run_policy, failure_policy=None)
    job = attrs.evolve(job, run_policy=run_policy)
    assert after(scaled(job, 1), pods(job), 30).status.scaled_down == {}


def test_deletion_of_a_pod_that_was_never_scheduled_ends_no_attempt() -> None:
    """Also dlctl deletes such pods, and a finalizer such as Kueue's may keep them for a while."""
    job = torch(ANY_REPLICA)
    found = pods(job, worker1=terminating("b", state=None, phase="Pending", node_name=""))
    assert causes(after(job, found, 31)) == []
    found = pods(job, worker1=terminating("b", state=None, phase="Pending", node_name="node-a"))
    assert causes(after(job, found, 31)) == [(Cause.PLATFORM, "worker-1")]
