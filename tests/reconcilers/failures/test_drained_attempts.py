"""Attempts that end because nodes are about to go."""

import datetime

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.objects.node_signals import Signal
from dlctl.api.policies.failure_policy import FailurePolicy
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Attempt, Cause, Confidence
from dlctl.reconcilers.failures.drained_attempts import drain_verdict
from dlctl.reconcilers.nodes.node_states import NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, Observed, observe
from tests.builders import NOW, RUNNING, exited, make_job, make_pod

SPOT = Signal("example.com/spot", "has the taint example.com/spot")
DRAINING = NodeStates({"node-b": NodeState("node-b", SPOT, None, SPOT.text, NodeFault.DRAINING)})


def job_with(phase: JobPhase = JobPhase.RUNNING, *attempts: Attempt, policy: bool = True) -> Job:
    job = make_job()
    run_policy = attrs.evolve(job.run_policy, failure_policy=FailurePolicy() if policy else None)
    status = attrs.evolve(job.status, phase=phase, attempts=attempts)
    return attrs.evolve(job, run_policy=run_policy, status=status)


def observed(
    job: Job, node: str = "node-b", nodes: NodeStates = DRAINING, code: int | None = None
) -> Observed:
    phase, state = ("Running", RUNNING) if code is None else ("Failed", exited(code))
    pods = [
        make_pod(job, Replica("worker", 0), state=RUNNING, node_name="node-a"),
        make_pod(job, Replica("worker", 1), phase=phase, state=state, node_name=node),
    ]
    return observe(job, Children(pods, nodes=nodes), NOW)


@pytest.mark.parametrize("phase", [JobPhase.CREATING, JobPhase.RUNNING])
def test_attempt_ends_for_the_first_replica_on_a_draining_node(phase: JobPhase) -> None:
    job = job_with(phase)
    verdict = drain_verdict(job, observed(job), NOW)
    assert verdict is not None
    assert (verdict.cause, verdict.confidence) == (Cause.PREEMPTION, Confidence.HIGH)
    assert (verdict.replica, verdict.node) == ("worker-1", "node-b")
    assert verdict.message == "node node-b is about to go: it has the taint example.com/spot"


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job_with(policy=False), id="without a failure policy"),
        pytest.param(job_with(JobPhase.RESTARTING), id="restarting already"),
        pytest.param(job_with(JobPhase.CLEAN_UP), id="ended"),
    ],
)
def test_attempt_continues_although_a_node_is_draining(job: Job) -> None:
    assert drain_verdict(job, observed(job), NOW) is None


def test_attempt_continues_while_none_of_its_own_nodes_is_draining() -> None:
    job = job_with()
    assert drain_verdict(job, observed(job, node="node-c"), NOW) is None
    assert drain_verdict(job, observed(job, nodes=NodeStates()), NOW) is None


def test_ended_replica_on_a_draining_node_ends_no_attempt() -> None:
    job = job_with()
    assert drain_verdict(job, observed(job, code=1), NOW) is None


@pytest.mark.parametrize(("minutes", "ends"), [(1, False), (59, False), (61, True)])
def test_same_signal_ends_an_attempt_once_an_hour(minutes: int, ends: bool) -> None:
    drained = drain_verdict(job_with(), observed(job_with()), NOW)
    assert drained is not None
    earlier = attrs.evolve(drained, time=NOW - datetime.timedelta(minutes=minutes))
    job = job_with(JobPhase.RUNNING, Attempt(0, NOW, NOW, earlier))
    assert (drain_verdict(job, observed(job), NOW) is not None) == ends
