"""Which replica of a failed attempt is blamed, and for what."""

import datetime
from typing import Any

from dlctl.api.job import Job, Replica
from dlctl.api.status.verdict import Cause, Confidence, Verdict
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.failures.first_cause import first_cause
from dlctl.reconcilers.nodes.node_states import NodeState
from dlctl.reconcilers.termination import termination
from tests.builders import NOW, exited, make_job, make_pod
from tests.reconcilers.failures.gangs import unhealthy_node

JOB = make_job(workers=8)


def failed_replica(
    index: int, *, job: Job = JOB, log: str = "", faulty_node: NodeState | None = None, **pod: Any
) -> FailedReplica:
    replica = Replica("worker", index)
    spec = job.replica_spec("worker")
    assert spec is not None
    made = make_pod(job, replica, **{"phase": "Failed", **pod})
    end = termination(made, spec.container, retry_policy=spec.retry_policy, now=NOW)
    return FailedReplica(replica, made, end, log, faulty_node)


def verdict(*replicas: FailedReplica) -> Verdict:
    return first_cause(JOB, replicas, NOW)


def test_no_replica_means_an_unknown_cause() -> None:
    found = verdict()
    assert (found.cause, found.confidence, found.replica) == (Cause.UNKNOWN, Confidence.LOW, "")


def test_pod_reason_wins_over_an_earlier_exit_code() -> None:
    early = NOW - datetime.timedelta(minutes=1)
    found = verdict(
        failed_replica(0, state=exited(1, at=early)),
        failed_replica(1, state=exited(137, reason="OOMKilled")),
    )
    assert (found.cause, found.replica) == (Cause.OUT_OF_MEMORY, "worker-1")
    assert (found.collateral, found.collateral_count) == (("worker-0",), 1)


def test_stopped_replicas_are_collateral_of_the_one_that_failed() -> None:
    found = verdict(*(failed_replica(index, state=exited(143)) for index in range(7)),
                    failed_replica(7, state=exited(139)))  # fmt: skip
    assert (found.cause, found.replica, found.exit_code) == (Cause.USER_CODE, "worker-7", 139)
    assert (len(found.collateral), found.collateral_count) == (5, 7)


def test_node_fault_wins_over_the_pods_reason() -> None:
    found = verdict(
        failed_replica(0, state=exited(137, reason="OOMKilled")),
        failed_replica(1, state=exited(1), faulty_node=unhealthy_node("has KernelDeadlock")),
    )
    assert (found.cause, found.replica) == (Cause.NODE, "worker-1")
    assert found.message == "its node has KernelDeadlock"


def test_evicted_pod_is_blamed_rather_than_those_that_lost_it() -> None:
    found = verdict(
        failed_replica(0, state=exited(1)),
        failed_replica(1, reason="Evicted", message="low on memory"),
    )
    assert (found.cause, found.replica) == (Cause.EVICTION, "worker-1")
    assert found.message == "evicted by the kubelet: low on memory"


def test_init_container_that_failed_is_named() -> None:
    ended = exited(4)
    ended["terminated"]["message"] = "the bucket is missing: s3://x"
    init = [{"name": "fetch", "state": ended}]
    found = verdict(failed_replica(0, initContainerStatuses=init, state={"waiting": {}}))
    assert found.message.startswith("init container fetch: exit code 4: ")
    assert found.message.endswith("\nthe bucket is missing: s3://x")
