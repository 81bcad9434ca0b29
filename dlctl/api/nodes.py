"""What the controller reads of nodes: whether one is about to go."""

from collections.abc import Collection

from dlctl.api.meta import Object, Projection, Resource

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class Taint(Projection, frozen=True, gc=False):
    """A reason for pods to keep away."""

    key: str = ""


class NodeSpec(Projection, frozen=True, gc=False):
    """What repels pods from a node."""

    taints: list[Taint] | None = None


class NodeCondition(Projection, frozen=True, gc=False):
    """One aspect of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(Projection, frozen=True, gc=False):
    """How a node fares."""

    conditions: list[NodeCondition] | None = None


class Node(Object, frozen=True, gc=False):
    """A node, as much of it as tells that it will go."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    def has_drain_signal(self, signals: Collection[str]) -> bool:
        """Tell whether it has a taint of one of these keys, or such a condition holds."""
        taints = (self.spec.taints if self.spec else None) or ()
        conditions = (self.status.conditions if self.status else None) or ()
        true_conditions = (c.type for c in conditions if c.status == "True")
        return any(signal in signals for signal in (*(t.key for t in taints), *true_conditions))
