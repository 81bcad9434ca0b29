"""Nodes that were taken down on purpose: their jobs restart, but nobody avoids them for that."""

import datetime
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job
from dlctl.api.objects.node_signals import Signal
from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.nodes.node_states import LostNode, NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.planning.job_plan import plan_job
from tests.reconcilers.failures.gangs import disrupted
from tests.reconcilers.failures.torch_jobs import (
    SETTINGS,
    at,
    attempts,
    failed,
    pods,
    running,
    torch_job,
)
from tests.reconcilers.nodes.charged_jobs import avoided, ledger_of
from tests.reconcilers.nodes.charged_jobs import job as stored_job

SHUT_DOWN: dict[str, Any] = {**disrupted("TerminationByKubelet"), "reason": "Terminated"}
DRAINING = Signal("aws-node-termination-handler/scheduled-maintenance", "has a taint")
SILENT = LostNode(out_of_service=False, silent_since=None)
DOWN = NodeState("a", fault="is not ready (KubeletNotReady)", fault_kind=NodeFault.DOWN)
GONE = NodeState("a", fault="was deleted", fault_kind=NodeFault.DELETED)
UNHEALTHY = NodeState("a", None, None, "has the condition KernelDeadlock=True", NodeFault.UNHEALTHY)


def silent_since(time: datetime.datetime | None) -> NodeState:
    lost = LostNode(out_of_service=False, silent_since=time)
    return NodeState("a", None, lost, "does not answer", NodeFault.DOWN, time)


def ended_on(condition: NodeState | None, code: int = 143, **status: Any) -> Job:
    """Return a job after the end of a replica on node-a, whose node is in this condition."""
    job = running(torch_job("Never", failurePolicy={"maxRestarts": 0}))
    nodes = NodeStates({"node-a": condition} if condition else {})
    found = pods(job, worker1={**failed(code, 30, node_name="node-a"), **status})
    observed = observe(job, Children(found, nodes=nodes), at(40))
    return attrs.evolve(job, status=plan_job(job, observed, Desired(), at(40), SETTINGS).status)


def is_avoided(job: Job) -> bool:
    """Return whether a node is avoided by all when two jobs have ended like this on it."""
    return avoided(ledger_of(*(stored_job(uid, *attempts(job)) for uid in "12"))) == ["node-a"]


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        pytest.param(None, SHUT_DOWN, id="graceful shutdown"),
        pytest.param(DOWN, SHUT_DOWN, id="graceful shutdown of a node that is down since"),
        pytest.param(silent_since(None), SHUT_DOWN,
                     id="graceful shutdown of a node that is silent since"),
        pytest.param(None, {"reason": "Shutdown"}, id="shutdown, as earlier kubelets call it"),
        pytest.param(None, {"reason": "NodeShutdown"}, id="rejected at shutdown"),
        pytest.param(None, disrupted("DeletionByTaintManager"), id="taint"),
        pytest.param(None, disrupted("DeletionByPodGC"), id="pod of a deleted node"),
        pytest.param(GONE, disrupted("DeletionByPodGC"), id="deleted node"),
        pytest.param(GONE, {}, id="stopped before its node was deleted"),
    ],
)  # fmt: skip
def test_planned_end_is_not_charged(condition: NodeState | None, status: dict[str, Any]) -> None:
    job = ended_on(condition, **status)
    verdict = attempts(job)[-1].verdict
    assert verdict is not None
    assert (verdict.cause, verdict.node) == (Cause.NODE, "node-a")
    assert verdict.confidence is Confidence.HIGH
    assert not is_avoided(job)
    assert job.status.counted_restarts == 0


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        pytest.param(DOWN, {}, id="not ready"),
        pytest.param(DOWN, disrupted("DeletionByTaintManager"), id="taint of a node that is down"),
        pytest.param(silent_since(None), {}, id="silent"),
        pytest.param(UNHEALTHY, SHUT_DOWN, id="shutdown of an unhealthy node"),
        pytest.param(None, {"reason": "NodeLost"}, id="lost"),
    ],
)
def test_fault_of_a_node_is_charged(condition: NodeState | None, status: dict[str, Any]) -> None:
    job = ended_on(condition, **status)
    verdict = attempts(job)[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.NODE
    assert is_avoided(job)


@pytest.mark.parametrize("lost", [None, SILENT])
def test_node_that_goes_as_announced_is_not_charged(lost: LostNode | None) -> None:
    job = ended_on(NodeState("a", DRAINING, lost, "is down", NodeFault.DOWN), code=137)
    verdict = attempts(job)[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.PREEMPTION
    assert not is_avoided(job)


def test_program_that_failed_before_its_node_was_deleted_has_failed_by_itself() -> None:
    verdict = attempts(ended_on(GONE, code=3))[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.USER_CODE


def not_ready_since(time: datetime.datetime | None) -> NodeState:
    return attrs.evolve(DOWN, down_since=time)


@pytest.mark.parametrize("down_since", [silent_since, not_ready_since])
def test_program_that_failed_before_its_node_went_down_has_failed_by_itself(
    down_since: Callable[[datetime.datetime], NodeState],
) -> None:
    job = ended_on(down_since(at(35)), code=3)
    verdict = attempts(job)[-1].verdict
    assert verdict is not None
    assert (verdict.cause, verdict.exit_code) == (Cause.USER_CODE, 3)
    assert not is_avoided(job)


@pytest.mark.parametrize(
    ("code", "down_since", "status"),
    [
        pytest.param(3, 30, {}, id="in the second in which its node went down"),
        pytest.param(3, 25, {}, id="afterwards"),
        pytest.param(3, None, {}, id="at an unknown time"),
        pytest.param(143, 35, {}, id="stopped"),
        pytest.param(137, 35, {}, id="killed"),
        pytest.param(3, 35, {"reason": "NodeLost"}, id="lost with its node"),
    ],
)
def test_program_that_did_not_end_by_itself_before_its_node_went_down_blames_it(
    code: int, down_since: float | None, status: dict[str, Any]
) -> None:
    condition = silent_since(None if down_since is None else at(down_since))
    job = ended_on(condition, code, **status)
    verdict = attempts(job)[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.NODE
    assert is_avoided(job)


def test_node_that_went_down_after_a_program_was_memory_killed_is_not_blamed() -> None:
    killed = failed(137, 30, reason="OOMKilled")["state"]
    verdict = attempts(ended_on(silent_since(at(35)), code=137, state=killed))[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.OUT_OF_MEMORY


def test_node_that_falls_silent_later_does_not_replace_a_verdict() -> None:
    policy = {"maxRestarts": 1, "rules": [{"action": "RestartReplica"}]}
    job = running(torch_job("Never", failurePolicy=policy))
    found = pods(job, worker1=failed(3, 30, node_name="node-a"))
    for seconds, condition in ((40, None), (41, silent_since(at(75))), (80, silent_since(at(75)))):
        nodes = NodeStates({"node-a": condition} if condition else {})
        now = at(seconds)
        observed = observe(job, Children(found, nodes=nodes), now)
        job = attrs.evolve(job, status=plan_job(job, observed, Desired(), now, SETTINGS).status)
    verdict = attempts(job)[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.USER_CODE
