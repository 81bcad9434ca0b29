"""What a valid job leaves running at its end without its manifest saying so. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from dlctl.api.job import Job
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.policies.run_policy import CleanPodPolicy

# By kind, the replicas that serve the others, as Kubeflow spells their type: they never end.
_SERVERS: Final = {"TFJob": "PS", "MPIJob": "Worker"}
_POLICIES: Final = ("cleanpodpolicy", "cleanuppodpolicy")


def end_notes(job: Job, manifest: ReadOnlyJSON) -> Iterator[str]:
    """Yield which replicas outlive a job whose manifest leaves cleanPodPolicy out."""
    type_ = _SERVERS.get(job.resource.kind, "")
    is_kept = job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    # Without other replicas, the job ends with them.
    if job.replica_count(type_.lower()) in (0, job.total_replicas) or not is_kept:
        return
    spec = manifest.get("spec")
    # A bare list has no fields to set.
    if isinstance(spec, dict) and not _chooses_policy(spec):
        yield (
            f"{type_} replicas run on after the job has ended, since cleanPodPolicy is None by "
            "default: set spec.runPolicy.cleanPodPolicy: Running to delete them then"
        )


def _chooses_policy(spec: dict[str, Any]) -> bool:
    fields = {str(name).lower(): value for name, value in spec.items()}
    policy = fields.get("runpolicy") or {}
    fields |= {str(name).lower(): value for name, value in policy.items()}
    return any(fields.get(name) for name in _POLICIES)
