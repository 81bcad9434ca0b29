"""Whether a pod may be scheduled to the node, in the words of kube-scheduler. Pure.

CPU and memory are not compared: a manifest for a cluster should start on a laptop, too.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from dlctl.api.meta import Object, Projection
from dlctl.local.node.api_types import NodePod, NodeSelectorRequirement, NodeSelectorTerm
from dlctl.local.node.resource_requests import pod_requests

DEFAULT_SCHEDULER: Final = "default-scheduler"


class SchedulableNodeSpec(Projection, frozen=True, gc=False):
    """Whether the node accepts pods."""

    unschedulable: bool | None = None


class SchedulableNodeStatus(Projection, frozen=True, gc=False):
    """The resources of the node."""

    allocatable: dict[str, Any] | None = None


class SchedulableNode(Object, frozen=True, gc=False):
    """The fields of a node that scheduling needs."""

    spec: SchedulableNodeSpec = SchedulableNodeSpec()
    status: SchedulableNodeStatus = SchedulableNodeStatus()

    @property
    def extended_resources(self) -> dict[str, int]:
        resources = self.status.allocatable or {}
        return {name: int(count) for name, count in resources.items() if "/" in name}


def rejection(
    pod: NodePod, node: SchedulableNode, used: Mapping[str, int], devices: Collection[str]
) -> str:
    """Return why the node cannot take the pod; empty if it can.

    ``used`` has the numbers that other pods hold; ``devices`` are resources that the node would
    list if it had any.
    """
    if node.spec.unschedulable:
        return _unavailable("1 node(s) were unschedulable")
    if not _matches(pod, node):
        return _unavailable(
            "1 node(s) didn't match Pod's node affinity/selector", _label_hint(pod, node)
        )
    have = dict.fromkeys(devices, 0) | node.extended_resources
    short = {
        name: count
        for name, count in sorted(pod_requests(pod).items())
        if name in have and count > have[name] - used.get(name, 0)
    }
    if not short:
        return ""
    reason = ", ".join(f"1 Insufficient {name}" for name in short)
    hints = [_numbers(count, have[name], used.get(name, 0)) for name, count in short.items()]
    if devices:
        hints.append("With --ignore-gpus, pods start without reserving any.")
    return _unavailable(reason, " ".join(hints))


def _numbers(count: int, have: int, used: int) -> str:
    if count > have:
        return f"The pod requests {count}, and this machine has {have or 'none'}."
    return f"The pod requests {count}, and {used} of {have} are in use."


def _unavailable(reason: str, hint: str = "") -> str:
    return f"0/1 nodes are available: {reason}. {hint}".strip()


def _label_hint(pod: NodePod, node: SchedulableNode) -> str:
    labels = node.metadata.labels or {}
    wanted = {**_labels_of_affinity(pod, node), **(pod.spec.node_selector or {})}
    missing = [
        f"--node-label {name}={value}"
        for name, value in wanted.items()
        if labels.get(name) != value
    ]
    return f"{' '.join(missing)} gives this machine the label." if missing else ""


def _labels_of_affinity(pod: NodePod, node: SchedulableNode) -> Mapping[str, str]:
    """Return labels with which the node would match a required affinity; empty if none do."""
    labels, fields = node.metadata.labels or {}, {"metadata.name": node.metadata.name}
    for term in _required_terms(pod):
        wanted = {
            each.key: (each.values or ["true"])[0]
            for each in term.match_expressions or ()
            if each.operator in ("In", "Exists") and not _requirement_matches(each, labels)
        }
        if _term_matches(term, {**labels, **wanted}, fields):
            return wanted
    return {}


def _matches(pod: NodePod, node: SchedulableNode) -> bool:
    labels = node.metadata.labels or {}
    selector = pod.spec.node_selector or {}
    if any(labels.get(name) != value for name, value in selector.items()):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if not (affinity and affinity.required):
        return True
    fields = {"metadata.name": node.metadata.name}
    return any(_term_matches(term, labels, fields) for term in _required_terms(pod))


def _required_terms(pod: NodePod) -> Sequence[NodeSelectorTerm]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required
    return (required.node_selector_terms or ()) if required else ()


def _term_matches(
    term: NodeSelectorTerm, labels: Mapping[str, str], fields: Mapping[str, str]
) -> bool:
    pairs = [(each, labels) for each in term.match_expressions or ()]
    pairs += [(each, fields) for each in term.match_fields or ()]
    return bool(pairs) and all(_requirement_matches(each, values) for each, values in pairs)


def _requirement_matches(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value, listed = values.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                difference = int(value or "") - int(listed[0])
            except (ValueError, IndexError):
                return False
            return difference > 0 if operator == "Gt" else difference < 0
        case _:
            return False
