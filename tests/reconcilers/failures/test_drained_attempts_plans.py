"""What a job with a failure policy does about nodes that are about to go, by what it decides."""

import datetime
from typing import Any

import attrs
import msgspec
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.objects.node_signals import Signal
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import MAX_DRAINED_NODES, Cause
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.nodes.node_states import NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, make_job, make_pod, training_job

RESTART_REPLICA = {"rules": [{"action": "RestartReplica"}]}
SPOT = Signal("example.com/spot", "has the taint example.com/spot")


def at(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def draining(*names: str) -> NodeStates:
    return NodeStates(
        {name: NodeState(name, SPOT, None, SPOT.text, NodeFault.DRAINING) for name in names}
    )


def torch_job(policy: dict[str, Any]) -> Job:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    manifest["spec"]["runPolicy"] = {"failurePolicy": policy}
    return make_job(manifest)


def tf_job(policy: dict[str, Any]) -> Job:
    """Return a job whose workers the policy does not decide about."""
    manifest = training_job("TFJob", PS=1, Worker=2)
    manifest["spec"] |= {"runPolicy": {"failurePolicy": policy}, "enableDynamicWorker": True}
    return make_job(manifest)


def pod(job: Job, replica: Replica, created: float = 0, deleted: float | None = None) -> Pod:
    """Return a running pod on a node of its own, named like its replica."""
    metadata: dict[str, Any] = {
        "uid": f"{replica}-{created}",
        "creationTimestamp": at(created).isoformat(),
        "labels": {"dlctl.dev/restart-attempt": str(job.status.job_restarts)},
    }
    if deleted is not None:
        metadata["deletionTimestamp"] = at(deleted + 60).isoformat()
        metadata["deletionGracePeriodSeconds"] = 60
    return make_pod(
        job,
        replica,
        state=RUNNING,
        restart_policy="Never",
        metadata=metadata,
        node_name=f"node-of-{replica}",
    )


def pods(job: Job, **changed: Pod | None) -> list[Pod]:
    """Return the pods of all replicas but for those that are given by type and index."""
    every = {str(r).replace("-", ""): pod(job, r) for r in job.replicas}
    return [one for one in (every | changed).values() if one is not None]


def planned(job: Job, found: list[Pod], seconds: float, *nodes: str) -> Plan:
    now = at(seconds)
    desired = Desired(tuple(job.replicas))
    observed = observe(job, Children(found, nodes=draining(*nodes)), now)
    return plan_job(job, observed, desired, now, PlanSettings())


def after(job: Job, found: list[Pod], seconds: float, *nodes: str) -> Job:
    return attrs.evolve(job, status=planned(job, found, seconds, *nodes).status)


def running(job: Job) -> Job:
    return after(job, pods(job), 1)


def names(found: tuple[Pod, ...]) -> list[str]:
    return [one.metadata.name for one in found]


def ends(job: Job) -> list[tuple[str, Cause] | None]:
    verdicts = (one.verdict for one in job.status.attempts)
    return [(verdict.replica, verdict.cause) if verdict else None for verdict in verdicts]


def test_decided_replica_restarts_the_whole_job() -> None:
    job = running(torch_job({}))
    plan = planned(job, pods(job), 10, "node-of-worker-1")
    assert plan.status.phase is JobPhase.RESTARTING
    assert plan.deleted_pods == ()


def test_replica_that_the_policy_does_not_decide_about_stays() -> None:
    job = running(tf_job({}))
    plan = planned(job, pods(job), 10, "node-of-worker-0", "node-of-worker-1")
    assert (plan.status, plan.deleted_pods) == (job.status, ())


def test_replica_without_a_decision_does_not_hide_one_with_it() -> None:
    job = tf_job({})
    job = running(attrs.evolve(job, replica_specs=job.replica_specs[::-1]))
    assert next(job.replicas).type == "worker"
    plan = planned(job, pods(job), 10, "node-of-worker-0", "node-of-ps-0")
    assert plan.status.phase is JobPhase.RESTARTING
    assert ends(attrs.evolve(job, status=plan.status)) == [("ps-0", Cause.PREEMPTION)]


def test_restart_replica_replaces_the_pods_on_draining_nodes() -> None:
    job = running(torch_job(RESTART_REPLICA))
    notice = ("node-of-worker-0", "node-of-worker-1")
    plan = planned(job, pods(job), 10, *notice)
    assert plan.status.phase is JobPhase.RUNNING
    assert names(plan.deleted_pods) == ["linear-worker-0", "linear-worker-1"]
    assert plan.action_notes[-1].reason == "PyTorchJobNodeDraining"
    (attempt,) = plan.status.attempts
    assert attempt.verdict is not None
    assert (attempt.end_time, attempt.verdict.replica) == (at(10), "worker-0")
    assert (attempt.verdict.collateral, attempt.verdict.collateral_count) == (("worker-1",), 1)


def test_controller_that_wrote_the_decision_only_is_followed_by_one_that_deletes() -> None:
    job = running(torch_job(RESTART_REPLICA))
    job = after(job, pods(job), 10, "node-of-worker-1")
    for seconds in (11, 12):
        plan = planned(job, pods(job), seconds, "node-of-worker-1")
        assert plan.status == job.status
        assert names(plan.deleted_pods) == ["linear-worker-1"]


def test_replacement_begins_the_next_attempt_and_is_no_end_of_its_own() -> None:
    job, notice = running(torch_job(RESTART_REPLICA)), "node-of-worker-1"
    job = after(job, pods(job), 10, notice)
    leaving = pods(job, worker1=pod(job, Replica("worker", 1), deleted=10))
    for seconds in (11, 65):
        plan = planned(job, leaving, seconds, notice)
        assert (plan.deleted_pods, plan.pods) == ((), ())
        job = attrs.evolve(job, status=plan.status)
    plan = planned(job, pods(job, worker1=None), 70, notice)
    assert plan.pods == (Replica("worker", 1),)
    job = attrs.evolve(job, status=plan.status)
    job = after(job, pods(job, worker1=pod(job, Replica("worker", 1), created=71)), 75)
    assert ends(job) == [("worker-1", Cause.PREEMPTION), None]
    assert [one.end_time for one in job.status.attempts] == [at(10), None]


@pytest.mark.parametrize("minutes", [1, 59, 61])
def test_replacement_that_returned_to_the_node_stays_for_an_hour(minutes: int) -> None:
    job, notice = running(torch_job(RESTART_REPLICA)), "node-of-worker-1"
    job = after(job, pods(job), 10, notice)
    back = pods(job, worker1=pod(job, Replica("worker", 1), created=20))
    job = after(job, back, 30, notice)
    assert len(job.status.attempts) == 2
    plan = planned(job, back, 10 + 60 * minutes, notice)
    assert names(plan.deleted_pods) == ([] if minutes < 60 else ["linear-worker-1"])


def test_rule_for_one_type_does_not_hide_the_restart_that_another_needs() -> None:
    rule = {"action": "RestartReplica", "targetReplicas": ["Master"]}
    job = running(torch_job({"rules": [rule]}))
    alone = planned(job, pods(job), 10, "node-of-master-0")
    assert names(alone.deleted_pods) == ["linear-master-0"]
    both = planned(job, pods(job), 10, "node-of-master-0", "node-of-worker-1")
    assert both.status.phase is JobPhase.RESTARTING
    assert ends(attrs.evolve(job, status=both.status)) == [("worker-1", Cause.PREEMPTION)]


def test_restart_that_counts_moves_the_pod_once_and_fails_the_job_after_the_maximum() -> None:
    rule = {"action": "RestartReplica", "onCauses": ["Preemption"]}
    job, notice = running(torch_job({"maxRestarts": 1, "rules": [rule]})), "node-of-worker-1"
    plan = planned(job, pods(job), 10, notice)
    assert (plan.status.counted_restarts, names(plan.deleted_pods)) == (1, ["linear-worker-1"])
    job = attrs.evolve(job, status=plan.status)
    moved = pods(job, worker1=pod(job, Replica("worker", 1), created=20))
    job = after(job, moved, 30)
    failed = after(job, moved, 40, "node-of-worker-0")
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "ReachedMaxRestarts"


def test_pod_leaves_while_another_replica_waits_for_its_replacement() -> None:
    job = running(torch_job(RESTART_REPLICA))
    job = after(job, pods(job), 10, "node-of-worker-1")
    waiting = pods(job, worker1=None)
    plan = planned(job, waiting, 12, "node-of-worker-1", "node-of-worker-0")
    assert names(plan.deleted_pods) == ["linear-worker-0"]


COUNTED = {"maxRestarts": 1, "rules": [{"action": "RestartReplica", "onCauses": ["Preemption"]}]}
FIRST, SECOND = "node-of-worker-1", "node-of-worker-0"


def moved_one_after_the_other() -> Job:
    """Return a job whose second node goes while the replica of the first is being replaced."""
    job = running(torch_job(COUNTED))
    job = after(job, pods(job), 10, FIRST)
    job = after(job, pods(job, worker1=None), 12, FIRST)
    plan = planned(job, pods(job, worker1=None), 20, FIRST, SECOND)
    assert names(plan.deleted_pods) == ["linear-worker-0"]
    return attrs.evolve(job, status=plan.status)


def test_second_node_that_goes_before_the_job_runs_again_counts_no_more() -> None:
    job = moved_one_after_the_other()
    leaving = pods(job, worker0=pod(job, Replica("worker", 0), deleted=20), worker1=None)
    for seconds in (21, 22, 50, 85):
        job = after(job, leaving, seconds, FIRST, SECOND)
    assert (job.status.phase, job.status.counted_restarts) == (JobPhase.RUNNING, 1)
    (attempt,) = job.status.attempts
    assert attempt.verdict is not None
    assert (attempt.verdict.replica, attempt.verdict.collateral) == ("worker-1", ("worker-0",))


@pytest.mark.parametrize("minutes", [2, 59, 61])
def test_replacement_that_returned_to_the_second_node_stays_for_an_hour(minutes: int) -> None:
    job, seconds = moved_one_after_the_other(), 20 + 60 * minutes
    back = {
        f"worker{index}": pod(job, Replica("worker", index), created=created)
        for index, created in ((0, 81), (1, 71))
    }
    job = after(job, pods(job, **back), 90, SECOND)
    assert [one.end_time for one in job.status.attempts] == [at(10), None]
    plan = planned(job, pods(job, **back), seconds, SECOND)
    is_over = minutes > 60
    assert (plan.status.failure is not None) == is_over
    assert is_over or (plan.deleted_pods, plan.status.counted_restarts) == ((), 1)


def test_replacements_that_returned_to_nodes_that_went_together_stay_for_an_hour() -> None:
    job = running(torch_job(COUNTED))
    job = after(job, pods(job), 10, FIRST, SECOND)
    back = {f"worker{i}": pod(job, Replica("worker", i), created=71) for i in (0, 1)}
    job = after(job, pods(job, **back), 80)
    plan = planned(job, pods(job, **back), 90, FIRST, SECOND)
    assert (plan.deleted_pods, plan.status.counted_restarts) == ((), 1)


def test_job_that_returned_to_nodes_that_went_together_stays_for_an_hour() -> None:
    job = running(torch_job({}))
    job = after(job, pods(job), 10, FIRST, SECOND)
    assert job.status.phase is JobPhase.RESTARTING
    job = after(job, [], 60, FIRST, SECOND)
    back = {str(r).replace("-", ""): pod(job, r, created=70) for r in job.replicas}
    for seconds in (80, 90):
        job = after(job, pods(job, **back), seconds, FIRST, SECOND)
    assert (job.status.phase, job.status.job_restarts) == (JobPhase.RUNNING, 1)


def test_replacement_on_a_node_that_goes_later_leaves_it() -> None:
    job = running(torch_job(COUNTED))
    job = after(job, pods(job), 10, FIRST)
    starting = pod(job, Replica("worker", 1), created=15)
    assert starting.spec is not None
    on_second = msgspec.structs.replace(starting.spec, node_name=SECOND)
    starting = msgspec.structs.replace(starting, spec=on_second, status=None)
    plan = planned(job, pods(job, worker1=starting), 20, FIRST, SECOND)
    assert names(plan.deleted_pods) == ["linear-worker-0", "linear-worker-1"]


def test_many_nodes_that_go_together_are_left_together() -> None:
    manifest = training_job("PyTorchJob", Master=1, Worker=2 * MAX_DRAINED_NODES)
    manifest["spec"]["runPolicy"] = {"failurePolicy": COUNTED}
    job = running(make_job(manifest))
    nodes = [f"node-of-{replica}" for replica in job.replicas]
    plan = planned(job, pods(job), 10, *nodes)
    assert len(plan.deleted_pods) == len(nodes)
    assert len(plan.status.attempts[0].drained_nodes) == MAX_DRAINED_NODES
    job = attrs.evolve(job, status=plan.status)
    again = planned(job, pods(job), 11, *nodes)
    assert (again.status, len(again.deleted_pods)) == (job.status, len(nodes))
