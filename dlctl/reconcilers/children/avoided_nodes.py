"""How the pods of a job avoid nodes, and when they give it up. Pure.

A pod under Kueue's topology scheduling avoids none: Kueue chooses its host from the template, and
the two would wait for each other.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.objects.nodes import HOSTNAME_LABEL
from dlctl.api.objects.pods import AVOIDED_NODES, Pod
from dlctl.api.status.job_status import JobStatus
from dlctl.reconcilers.children.placement import is_unscheduled

_TOPOLOGY: Final = re.compile(
    r"kueue\.x-k8s\.io/podset-(required|preferred|unconstrained)-topology"
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@attrs.frozen
class AvoidedNode:
    """A node that pods avoid: its name, and its hostname label."""

    name: str
    hostname: str


def avoided_nodes(pod: Pod) -> Sequence[str]:
    """Return the names of the nodes that a pod avoids."""
    names = pod.metadata.annotation(AVOIDED_NODES)
    return names.split(",") if names else ()


def pods_to_free(status: JobStatus, pods: Iterable[Pod]) -> Iterator[Pod]:
    """Yield the unscheduled pods that avoid nodes although their job has given that up."""
    if is_avoidance_dropped(status):
        yield from (pod for pod in pods if avoided_nodes(pod) and is_unscheduled(pod))


def is_avoidance_dropped(status: JobStatus) -> bool:
    """Return whether the present attempt of a job could not be scheduled without these nodes."""
    dropped_at = status.avoidance_dropped_at
    if dropped_at is None:
        return False
    ends = (attempt.end_time for attempt in status.attempts)
    return not any(end is not None and end > dropped_at for end in ends)


def with_avoided_nodes(pod: JSON, nodes: Sequence[AvoidedNode]) -> JSON:
    """Return a pod that avoids these nodes; the same one if it must or can not."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    if not nodes or spec.get("nodeName") or any(map(_TOPOLOGY.fullmatch, annotations)):
        return pod
    affinity = _affinity(spec.get("affinity"), sorted({node.hostname for node in nodes}))
    if affinity is None:
        return pod
    names = ",".join(node.name for node in nodes)
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, AVOIDED_NODES: names}},
        "spec": {**spec, "affinity": affinity},
    }


def _affinity(given: Any, hostnames: Sequence[str]) -> JSON | None:
    """Return an affinity that also excludes hosts; None for one that the server will reject."""
    affinity = _mapping(given)
    node_affinity = _mapping(affinity.get("nodeAffinity")) if affinity is not None else None
    required = _mapping(node_affinity.get(_REQUIRED)) if node_affinity is not None else None
    if affinity is None or node_affinity is None or required is None:
        return None
    excluded = {"key": HOSTNAME_LABEL, "operator": "NotIn", "values": list(hostnames)}
    terms = required.get("nodeSelectorTerms") if required else []
    if not isinstance(terms, list) or not all(isinstance(term, dict) for term in terms):
        return None
    # Terms are alternatives. An empty one matches no node, and must not begin to match others.
    merged = [_with_expression(term, excluded) if term else term for term in terms]
    if not required:
        merged = [_with_expression({}, excluded)]
    required = {**required, "nodeSelectorTerms": merged}
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: required}}


def _mapping(value: Any) -> JSON | None:
    """Return a mapping, an empty one for null; None for anything else."""
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


def _with_expression(term: JSON, expression: JSON) -> JSON:
    own = term.get("matchExpressions")
    return {**term, "matchExpressions": [*(own if isinstance(own, list) else ()), expression]}
