"""The fields of nodes that the controller reads: taints, conditions and labels.

Without the times of heartbeats, so that a node that merely reports equals its last report.
"""

import datetime
from collections.abc import Sequence
from typing import Final

from dlctl.api.meta import Object, Projection, Resource

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
# Set by an administrator who knows that the node is off; Kubernetes then deletes its pods by force.
OUT_OF_SERVICE_TAINT: Final = "node.kubernetes.io/out-of-service"
# Set by dlctl where administrators opt in.
CHARGED_TAINT: Final = "dlctl.dev/charged"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"


class Taint(Projection, frozen=True, gc=False):
    """A taint, which repels pods."""

    key: str = ""


class NodeSpec(Projection, frozen=True, gc=False):
    """The taints of a node."""

    taints: tuple[Taint, ...] | None = None


class NodeCondition(Projection, frozen=True, gc=False):
    """One aspect of a node, and since when it is so."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: datetime.datetime | None = None


class NodeStatus(Projection, frozen=True, gc=False):
    """The conditions of a node."""

    conditions: tuple[NodeCondition, ...] | None = None


class Node(Object, frozen=True, gc=False):
    """A node, as far as it shows whether it is healthy and stays."""

    kept_annotations = ()

    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def conditions(self) -> Sequence[NodeCondition]:
        return (self.status.conditions if self.status else None) or ()

    def has_taint(self, key: str) -> bool:
        taints = (self.spec.taints if self.spec else None) or ()
        return any(taint.key == key for taint in taints)

    def condition(self, type_: str) -> NodeCondition | None:
        return next((c for c in self.conditions if c.type == type_), None)

    @property
    def hostname(self) -> str:
        """Return the value of the label by which pods select and avoid it."""
        return self.metadata.label(HOSTNAME_LABEL) or self.metadata.name

    def reports_as(self, other: "Node") -> bool:
        """Return whether another report of it says the same."""
        return (
            self.metadata.labels == other.metadata.labels
            and self.spec == other.spec
            and self.status == other.status
        )
