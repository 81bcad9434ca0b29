"""Finds unscheduled pods whose template has changed its placement since their creation.

Pure. A queue such as Kueue writes node selectors into a job's templates on admission, and others on
readmission; if the controller misses the suspension in between, pods of the first admission still
exist. Each pod carries a hash of the template's placement fields, because admission may add fields
that no template has.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.objects.pods import PLACEMENT_HASH, Pod, PodPhase
from dlctl.reconcilers.children.dependents import content_hash
from dlctl.reconcilers.observe import Observed

# The fields of a pod spec that determine its placement; they are immutable on an existing pod.
_PLACEMENT_FIELDS: Final = (
    "affinity",
    "nodeSelector",
    "runtimeClassName",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)


def placement_hash(template: Mapping[str, Any]) -> str:
    """Return the hash of a template's placement fields."""
    spec = template["spec"]
    return content_hash({name: spec[name] for name in _PLACEMENT_FIELDS if spec.get(name)})


def outdated_pods(job: Job, observed: Observed) -> Iterator[Pod]:
    """Yield the unscheduled pods to replace because their template's placement has changed."""
    for spec in job.replica_specs:
        pods = [o.pod for o in observed.replicas if o.replica.type == spec.type]
        yield from _outdated(spec, [pod for pod in pods if pod is not None and is_unscheduled(pod)])


def is_unscheduled(pod: Pod) -> bool:
    """Return whether a pod that is not being deleted has no node yet."""
    is_waiting = pod.phase is PodPhase.PENDING and not pod.node_name
    return is_waiting and not pod.metadata.is_terminating


def _outdated(spec: ReplicaSpec, waiting: list[Pod]) -> Iterator[Pod]:
    if not waiting:
        return
    wanted = placement_hash(spec.template)
    for pod in waiting:
        # Pods created by another operator lack the annotation and are left alone.
        if pod.metadata.annotation(PLACEMENT_HASH, wanted) != wanted:
            yield pod
