"""Evidence from the state of a replica's node about its end."""

import re
from typing import Final

import attrs

from dlctl.api.status.verdict import Cause, Confidence
from dlctl.reconcilers.failures.evidence import Evidence, Proof
from dlctl.reconcilers.failures.exit_code_evidence import KILLED, STOPPED
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.failures.pod_evidence import pod_evidence, reports_shutdown
from dlctl.reconcilers.nodes.node_states import NodeFault, NodeState
from dlctl.reconcilers.program_output.log_classes import Weight

_HARDWARE_FAULT: Final = re.compile(
    r"gpu|xid|nvlink|nvswitch|acceleratedhardware|\becc\b|iblink|neuron|tpu", re.IGNORECASE
)


def api_evidence(failed: FailedReplica, message: str) -> Evidence | None:
    """Return what the API proves: the state of the node, or else the pod's reasons."""
    by_pod, node = pod_evidence(failed, message), failed.faulty_node
    if node is not None and _has_ended(node, failed, by_pod):
        return _node_evidence(node)
    return by_pod


def tie_break(failed: FailedReplica, evidence: Evidence) -> Evidence:
    """Return better evidence of a replica that merely lost its peers, if its own node is draining.

    Also if the node went down after the replica had ended.
    """
    node = failed.faulty_node
    if node is None or evidence.weight is not Weight.COLLATERAL:
        return evidence
    return attrs.evolve(_node_evidence(node), confidence=Confidence.LOW, weight=Weight.COLLATERAL)


def _has_ended(node: NodeState, failed: FailedReplica, by_pod: Evidence | None) -> bool:
    """Return whether the fault of its node is why a replica ended.

    A node without a fault of its own has ended pods that were disrupted, deleted or stopped, but
    programs on it may fail by themselves, or lose their peers. So may those that ended before it
    went down.
    """
    if node.fault_kind is NodeFault.UNHEALTHY:
        return True
    if node.fault_kind is NodeFault.DOWN:
        if node.fault_cause is Cause.NODE and reports_shutdown(failed.pod):
            # A node that was shut down in order is down since.
            return False
        if not _ended_before(node, failed):
            return True
    if by_pod is not None:
        return by_pod.cause.is_infrastructure
    end = failed.termination
    return end is None or end.exit_code in STOPPED or end.exit_code == KILLED


def _ended_before(node: NodeState, failed: FailedReplica) -> bool:
    """Return whether a replica ended before its node went down, as far as is known."""
    since, end = node.down_since, failed.termination
    return since is not None and end is not None and end.time < since


def _node_evidence(node: NodeState) -> Evidence:
    cause = node.fault_cause
    if cause is Cause.NODE and _HARDWARE_FAULT.search(node.fault):
        cause = Cause.HARDWARE
    is_planned = node.fault_kind is NodeFault.DELETED
    return Evidence(cause, Proof.NODE, f"its node {node.fault}", is_planned=is_planned)
