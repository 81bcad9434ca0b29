"""Which pods wait to be scheduled by a template that has changed since they were created.

Pure. A queue such as Kueue writes node selectors into a job's templates when it admits the job, and
others when it admits it again; if the suspension in between is never seen, pods of the first
admission are still there. Each pod carries a digest of what was asked for, because admission may
add to it what no template says.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.pods import Pod, PodPhase
from dlctl.reconcilers.children.dependents import content_hash
from dlctl.reconcilers.observe import Observed

PLACEMENT_HASH: Final = "dlctl.dev/placement-hash"
# What of a pod's spec says where it may run; none of it can be changed once the pod is there.
_PLACEMENT_FIELDS: Final = (
    "affinity",
    "nodeSelector",
    "runtimeClassName",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)


def placement_hash(template: Mapping[str, Any]) -> str:
    """Return the digest of where a template has its pods run."""
    spec = template["spec"]
    return content_hash({name: spec[name] for name in _PLACEMENT_FIELDS if spec.get(name)})


def outdated_pods(job: Job, observed: Observed) -> Iterator[Pod]:
    """Yield the pods to replace: not placed yet, and from a template that placed them otherwise."""
    for spec in job.replica_specs:
        pods = [o.pod for o in observed.replicas if o.replica.type == spec.type]
        yield from _outdated(spec, [pod for pod in pods if pod is not None and is_unscheduled(pod)])


def is_unscheduled(pod: Pod) -> bool:
    """Return whether no node has been chosen for a pod that is to stay."""
    placed = pod.spec is not None and pod.spec.node_name
    return pod.phase is PodPhase.PENDING and not placed and not pod.metadata.is_terminating


def _outdated(spec: ReplicaSpec, waiting: list[Pod]) -> Iterator[Pod]:
    if not waiting:
        return
    wanted = placement_hash(spec.template)
    for pod in waiting:
        # One that another operator has created does not carry it, and is left alone.
        if (pod.metadata.annotations or {}).get(PLACEMENT_HASH, wanted) != wanted:
            yield pod
