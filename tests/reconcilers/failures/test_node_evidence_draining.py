"""Members on a node that is up, but announced to go: when the node is to blame."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.objects.node_signals import Signal
from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.failures.attempts import recorded_attempts
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.nodes.node_states import LostNode, NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW
from tests.reconcilers.failures.gangs import disrupted, ended, failed_replica, verdict_of
from tests.reconcilers.failures.torch_jobs import at, failed, pods, running, torch_job
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised, torchrun

DISRUPTED = Signal("karpenter.sh/disrupted", "has the taint karpenter.sh/disrupted")
RESET = raised("ConnectionResetError: [Errno 104] Connection reset by peer")
BUG = raised("ValueError: nan")


def leaving(state: dict[str, Any], **status: Any) -> FailedReplica:
    """Return worker-1, whose node is announced to go."""
    node = NodeState("b", DISRUPTED, None, DISRUPTED.text, NodeFault.DRAINING)
    return failed_replica("worker-1", state, faulty_node=node, **status)


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        pytest.param(ended(1, BUG), Cause.USER_CODE, id="exception"),
        pytest.param(ended(137, reason="OOMKilled"), Cause.OUT_OF_MEMORY, id="memory limit"),
        pytest.param(ended(42), Cause.USER_CODE, id="exit code"),
        pytest.param(ended(137), Cause.UNKNOWN, id="killed"),
        pytest.param(ended(134), Cause.USER_CODE, id="abort"),
    ],
)
@pytest.mark.parametrize("ends_first", [False, True])
def test_replica_that_lost_its_peer_does_not_blame_its_node(
    state: dict[str, Any], cause: Cause, ends_first: bool
) -> None:
    late_s = -5 if ends_first else 5
    found = verdict_of(failed_replica("worker-0", state), leaving(ended(1, RESET, after_s=late_s)))
    assert (found.cause, found.replica) == (cause, "worker-0")


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        pytest.param(ended(1, BUG), Cause.USER_CODE, id="exception"),
        pytest.param(ended(137, reason="OOMKilled"), Cause.OUT_OF_MEMORY, id="memory limit"),
        pytest.param(ended(3), Cause.USER_CODE, id="exit code"),
        pytest.param(ended(127), Cause.BAD_COMMAND_OR_IMAGE, id="command not found"),
    ],
)
def test_own_failure_on_a_node_that_leaves_is_its_own(state: dict[str, Any], cause: Cause) -> None:
    assert verdict_of(leaving(state)).cause is cause


@pytest.mark.parametrize(
    "culprit",
    [
        pytest.param(leaving(ended(143)), id="stopped"),
        pytest.param(leaving(ended(130)), id="interrupted"),
        pytest.param(leaving(ended(137)), id="killed"),
        pytest.param(leaving(ended(1, torchrun(2, -15))), id="stopped under torchrun"),
        pytest.param(leaving(ended(1), **disrupted("EvictionByEvictionAPI")), id="evicted"),
        pytest.param(leaving(ended(0), reason="Terminated"), id="shut down"),
        pytest.param(attrs.evolve(leaving({}, phase="Running"), termination=None), id="deleted"),
    ],
)
def test_node_that_leaves_is_blamed_for_what_it_ends(culprit: FailedReplica) -> None:
    found = verdict_of(failed_replica("worker-0", ended(1, RESET)), culprit)
    assert (found.cause, found.replica) == (Cause.SCALE_DOWN, "worker-1")
    assert (found.message, found.confidence) == (f"its node {DISRUPTED.text}", Confidence.HIGH)


def test_node_that_leaves_decides_between_replicas_that_lost_a_peer() -> None:
    others = [failed_replica(f"worker-{n}", ended(1, RESET, after_s=-2)) for n in (0, 2)]
    found = verdict_of(*others, leaving(ended(1, outputs.GLOO_CLOSED)))
    assert (found.cause, found.replica) == (Cause.SCALE_DOWN, "worker-1")
    assert found.confidence is Confidence.LOW


def test_node_that_goes_down_decides_between_replicas_that_lost_a_peer_before() -> None:
    first = failed_replica("worker-0", ended(1, RESET, after_s=-2))
    down = NOW - datetime.timedelta(minutes=4)
    node = NodeState("b", DISRUPTED, None, "is not ready", NodeFault.DOWN, down)
    second = failed_replica("worker-1", ended(1, RESET), faulty_node=node)
    found = verdict_of(first, second)
    assert (found.replica, found.confidence) == ("worker-1", Confidence.LOW)
    assert not found.is_consequence


@pytest.mark.parametrize(
    ("condition", "cause", "replica"),
    [
        pytest.param(
            NodeState("b", DISRUPTED, None, DISRUPTED.text, NodeFault.DRAINING),
            Cause.USER_CODE, "worker-0", id="up",
        ),
        pytest.param(
            NodeState("b", DISRUPTED, None, "is sick", NodeFault.UNHEALTHY),
            Cause.NODE, "worker-1", id="unhealthy",
        ),
        pytest.param(
            NodeState("b", DISRUPTED, LostNode(False, None), "is lost", NodeFault.DOWN),
            Cause.SCALE_DOWN, "worker-1", id="lost",
        ),
        pytest.param(
            NodeState("b", DISRUPTED, None, "is not ready", NodeFault.DOWN),
            Cause.SCALE_DOWN, "worker-1", id="not ready",
        ),
    ],
)  # fmt: skip
def test_bug_beside_a_node_that_leaves(condition: NodeState, cause: Cause, replica: str) -> None:
    job = running(torch_job())
    late = at(35)
    ends: dict[str, Any] = {
        "worker0": failed(1, 30),
        "worker1": failed(1, 35, "b", node_name="node-b"),
    }
    ends["worker0"]["state"]["terminated"]["message"] = BUG
    ends["worker1"]["state"]["terminated"]["message"] = RESET
    nodes = NodeStates({"node-b": condition})
    observed = observe(job, Children(pods(job, **ends), nodes=nodes), late)
    now = late + datetime.timedelta(seconds=1)
    verdict = recorded_attempts(job, observed, now, RunJudge(job, now))[-1].verdict
    assert verdict is not None
    assert (verdict.cause, verdict.replica) == (cause, replica)
