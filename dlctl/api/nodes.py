"""The fields of nodes that the controller reads: signals that a node is about to be removed."""

from collections.abc import Collection

from dlctl.api.meta import Object, Projection, Resource

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class Taint(Projection, frozen=True, gc=False):
    """A taint, which repels pods."""

    key: str = ""


class NodeSpec(Projection, frozen=True, gc=False):
    """The taints of a node."""

    taints: list[Taint] | None = None


class NodeCondition(Projection, frozen=True, gc=False):
    """One aspect of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(Projection, frozen=True, gc=False):
    """The conditions of a node."""

    conditions: list[NodeCondition] | None = None


class Node(Object, frozen=True, gc=False):
    """A node, as far as it shows that it is about to be removed."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    def has_drain_signal(self, signals: Collection[str]) -> bool:
        """Return whether it has a taint or a true condition with one of these names."""
        taints = (self.spec.taints if self.spec else None) or ()
        conditions = (self.status.conditions if self.status else None) or ()
        true_conditions = (c.type for c in conditions if c.status == "True")
        return any(signal in signals for signal in (*(t.key for t in taints), *true_conditions))
