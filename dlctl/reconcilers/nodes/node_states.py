"""The nodes that are draining, lost or at fault, as of their last reports. Values.

A healthy node costs nothing: it has no state here.
"""

import datetime
import enum
from collections.abc import Mapping
from functools import cached_property

import attrs

from dlctl.api.objects.node_signals import NodeSignals, Signal
from dlctl.api.objects.nodes import OUT_OF_SERVICE_TAINT, Node
from dlctl.api.status.verdict import Cause


class NodeFault(enum.Enum):
    """The kind of a node's fault, by which the ends of programs on it are judged."""

    # The node shows a signal of a fault.
    UNHEALTHY = enum.auto()
    # It is not ready, or does not answer.
    DOWN = enum.auto()
    # It is up, as far as is known, but its removal is announced.
    DRAINING = enum.auto()
    DELETED = enum.auto()


@attrs.frozen
class LostNode:
    """A node whose kubelet cannot confirm that a pod has ended."""

    # An administrator says that it is off.
    out_of_service: bool
    # The time since which its lease is not renewed; None if it is renewed.
    silent_since: datetime.datetime | None


@attrs.frozen
class NodeState:
    """All that is special about one node."""

    hostname: str
    draining: Signal | None = None
    lost: LostNode | None = None
    # A clause that says why the node may be to blame; empty without a fault.
    fault: str = ""
    fault_kind: NodeFault | None = None
    # The time since which it is not ready or does not respond; None if it is up or unknown.
    down_since: datetime.datetime | None = None

    @property
    def fault_cause(self) -> Cause:
        """Return the cause of an end for which its fault is to blame."""
        if self.draining is None or self.fault_kind is NodeFault.UNHEALTHY:
            return Cause.NODE
        # A node that stops responding while it drains leaves as announced.
        return self.draining.cause


@attrs.frozen
class NodeStates:
    """The special nodes of the cluster, by name; shared by all jobs."""

    by_name: Mapping[str, NodeState] = attrs.field(factory=dict)

    @cached_property
    def draining(self) -> Mapping[str, Signal]:
        """The signals of the nodes that are about to go."""
        return {name: one.draining for name, one in self.by_name.items() if one.draining}

    @cached_property
    def lost(self) -> Mapping[str, LostNode]:
        """The nodes whose kubelets cannot confirm an end."""
        return {name: one.lost for name, one in self.by_name.items() if one.lost}


def node_state(node: Node, signals: NodeSignals) -> NodeState | None:
    """Return what is special about a node; None for a healthy one."""
    lost, fault, draining = _lost(node), signals.fault(node), signals.draining(node)
    faults = {
        NodeFault.UNHEALTHY: fault.text if fault else "",
        NodeFault.DOWN: _unready_text(node, lost),
        NodeFault.DRAINING: draining.text if draining else "",
    }
    for kind, text in faults.items():
        if text:
            return NodeState(node.hostname, draining, lost, text, kind, _down_since(node))
    return None


def _lost(node: Node) -> LostNode | None:
    ready, out_of_service = node.condition("Ready"), node.has_taint(OUT_OF_SERVICE_TAINT)
    # The node controller sets Unknown; False is the kubelet's own report.
    is_silent = ready is not None and ready.status == "Unknown"
    if not is_silent:
        # Kubernetes ignores the taint, too, while the node is ready.
        off = out_of_service and (ready is None or ready.status != "True")
        return LostNode(out_of_service=True, silent_since=None) if off else None
    return LostNode(out_of_service, ready.last_transition_time if ready else None)


def _down_since(node: Node) -> datetime.datetime | None:
    ready = node.condition("Ready")
    return None if ready is None or ready.status == "True" else ready.last_transition_time


def _unready_text(node: Node, lost: LostNode | None) -> str:
    if lost is not None:
        return "is out of service" if lost.out_of_service else "does not answer"
    ready = node.condition("Ready")
    if ready is None or ready.status != "False":
        return ""
    return f"is not ready ({ready.reason})" if ready.reason else "is not ready"
