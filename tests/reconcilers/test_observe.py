"""The state of each replica, from its pod."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Replica
from dlctl.api.objects.pods import Service
from dlctl.api.status.conditions import SUSPENDED, Condition
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, observed_of

JOB = make_job(servers=0, workers=1)
WORKER = Replica("worker", 0)
EARLIER = NOW - datetime.timedelta(minutes=1)
LEAVING = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 30}


def observed(**pod: Any) -> ObservedReplica:
    observed = observed_of(JOB, make_pod(JOB, WORKER, **pod))
    return next(one for one in observed.replicas if one.replica == WORKER)


def test_replica_without_a_pod_is_missing() -> None:
    observed = observed_of(JOB)
    assert [one.state for one in observed.replicas] == [ReplicaState.MISSING] * 2


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        pytest.param({"phase": "Pending"}, ReplicaState.PENDING, id="pending"),
        pytest.param({"state": RUNNING}, ReplicaState.RUNNING, id="running"),
        pytest.param({"containerStatuses": []}, ReplicaState.RUNNING, id="running by its phase"),
        pytest.param({"state": exited(0)}, ReplicaState.SUCCEEDED, id="success"),
        pytest.param({"state": exited(1)}, ReplicaState.FAILED_PERMANENT, id="permanent exit"),
        pytest.param(
            {"phase": "Failed", "state": exited(137)},
            ReplicaState.FAILED_RETRYABLE,
            id="retryable exit",
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted"}, ReplicaState.FAILED_RETRYABLE, id="eviction"
        ),
        pytest.param(
            {"state": RUNNING, "metadata": LEAVING}, ReplicaState.TERMINATING, id="terminating"
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted", "metadata": LEAVING},
            ReplicaState.TERMINATING,
            id="evicted and terminating",
        ),
        pytest.param(
            {"phase": "Failed", "state": exited(137, at=EARLIER), "metadata": LEAVING},
            ReplicaState.TERMINATING,
            id="failed, and deleted for that",
        ),
        pytest.param(
            {"phase": "Failed", "state": exited(1, at=EARLIER), "metadata": LEAVING},
            ReplicaState.FAILED_PERMANENT,
            id="failed for good, and deleted",
        ),
    ],
)
def test_replica_state_follows_from_its_pod(pod: dict[str, Any], state: ReplicaState) -> None:
    assert observed(**pod).state is state


@pytest.mark.parametrize(
    ("state", "last_state"),
    [
        pytest.param(exited(137), None, id="just ended"),
        pytest.param({"waiting": {"reason": "CrashLoopBackOff"}}, exited(137), id="waiting"),
    ],
)
def test_container_that_the_kubelet_will_restart_is_restarting(
    state: dict[str, Any], last_state: dict[str, Any] | None
) -> None:
    one = observed(state=state, last_state=last_state)
    assert (one.state, one.is_restarting) == (ReplicaState.PENDING, True)


def test_container_in_its_first_start_is_not_restarting() -> None:
    assert not observed(
        phase="Pending", state={"waiting": {"reason": "ContainerCreating"}}
    ).is_restarting


def test_replica_recorded_as_completed_stays_so_without_a_pod() -> None:
    done = ReplicaStatus("worker", JobState.SUCCEEDED, {}, frozenset({0}))
    job = attrs.evolve(JOB, status=JobStatus(replica_statuses=(done,)))
    assert observed_of(job).states[WORKER] is ReplicaState.SUCCEEDED


def test_replica_has_completed_if_its_pod_had_before_it_was_deleted() -> None:
    pod = make_pod(JOB, WORKER, state=exited(0))
    completed = {pod.metadata.name: pod}
    assert observed_of(JOB, terminated_pods=completed).states[WORKER] is ReplicaState.SUCCEEDED
    # Without grace: the deletion may have come before the end.
    gone = {**LEAVING, "deletionGracePeriodSeconds": 0}
    leaving = make_pod(JOB, WORKER, state=exited(0), metadata=gone)
    assert observed_of(JOB, leaving).states[WORKER] is ReplicaState.TERMINATING
    seen = observed_of(JOB, leaving, terminated_pods=completed)
    assert seen.states[WORKER] is ReplicaState.SUCCEEDED


def test_replica_has_completed_although_its_job_counts_as_started_later() -> None:
    # As after the wait of a gang for its admission.
    job = attrs.evolve(JOB, status=JobStatus(JobPhase.RUNNING, start_time=NOW))
    created = {"creationTimestamp": EARLIER.isoformat()}
    pod = make_pod(job, WORKER, state=exited(0), metadata=created)
    completed = {pod.metadata.name: pod}
    assert observed_of(job, terminated_pods=completed).states[WORKER] is ReplicaState.SUCCEEDED


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        pytest.param({"state": exited(1)}, ReplicaState.FAILED_PERMANENT, id="failed for good"),
        pytest.param(
            {"phase": "Failed", "state": exited(143)}, ReplicaState.FAILED_RETRYABLE, id="failed"
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted", "state": exited(0)},
            ReplicaState.FAILED_RETRYABLE,
            id="evicted",
        ),
    ],
)
@pytest.mark.parametrize("is_gone", [True, False])
def test_replica_has_failed_if_its_pod_had_before_it_was_deleted(
    pod: dict[str, Any], state: ReplicaState, *, is_gone: bool
) -> None:
    before = make_pod(JOB, WORKER, **pod)
    left = [] if is_gone else [make_pod(JOB, WORKER, state=RUNNING, metadata=LEAVING)]
    found = observed_of(JOB, *left, terminated_pods={before.metadata.name: before})
    (one,) = [one for one in found.replicas if one.replica == WORKER]
    assert (one.state, one.pod) == (state, before if is_gone else left[0])
    assert one.failure is not None
    assert one.phase_wait_s == 0
    # To be read, but not to be deleted.
    assert found.own_pods == tuple(left)
    assert found.pods_with_newest_launcher == (one.pod,)
    assert not found.present


def test_replica_has_not_ended_with_another_pod() -> None:
    before = make_pod(JOB, WORKER, state=exited(0))
    existing = make_pod(JOB, WORKER, state=RUNNING, metadata={"uid": "another"})
    found = observed_of(JOB, existing, terminated_pods={before.metadata.name: before})
    assert found.states[WORKER] is ReplicaState.RUNNING


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(JobStatus(JobPhase.SUSPENDED), id="suspended"),
        pytest.param(
            JobStatus(
                JobPhase.RUNNING,
                start_time=NOW,
                conditions=(Condition.at(NOW, SUSPENDED, "", "", status=False),),
            ),
            id="resumed",
        ),
    ],
)
def test_replica_has_not_completed_by_a_pod_of_a_run_that_was_suspended(status: JobStatus) -> None:
    job = attrs.evolve(JOB, status=status)
    created = {"creationTimestamp": EARLIER.isoformat()}
    pod = make_pod(job, WORKER, state=exited(0), metadata=created)
    completed = {pod.metadata.name: pod}
    assert observed_of(job, terminated_pods=completed).states[WORKER] is ReplicaState.MISSING


def test_pod_beyond_the_spec_is_surplus() -> None:
    pod = make_pod(JOB, Replica("worker", 7))
    assert observed_of(JOB, pod).surplus_pods == (pod,)


def test_terminating_service_counts_as_missing() -> None:
    gone: dict[str, Any] = {"name": "b", "deletionTimestamp": NOW}
    services = [
        Service(metadata=make_pod(JOB, WORKER, metadata={"name": "a"}).metadata),
        Service(metadata=make_pod(JOB, WORKER, metadata=gone).metadata),
    ]
    observed = observe(JOB, Children(services=services), NOW)
    assert list(observed.services) == ["a"]
