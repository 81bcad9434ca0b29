"""The variables of an attempt for torchrun. Pure; only for jobs with a failure policy.

Agents of different attempts never meet: they look for others by the id of the rendezvous.
"""

from collections.abc import Mapping
from typing import Final

from dlctl.api.job import Job, ReplicaSpec

_RDZV_ID: Final = "PET_RDZV_ID"
_SHUTDOWN_TIMEOUT: Final = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
# Between the end of torchrun's wait for its workers and that of the pod's grace period.
_MARGIN_S: Final = 5


def torchrun_environment(job: Job, spec: ReplicaSpec) -> Mapping[str, str]:
    """Return the variables of the present attempt that the user has not set."""
    if not job.has_failure_policy:
        return {}
    elastic = job.spec.get("elasticPolicy") or {}
    rdzv_id = elastic.get("rdzvId") or job.key.name
    variables = {
        _RDZV_ID: f"{rdzv_id}-{job.status.job_restarts}",
        # By default torchrun kills its workers when the pod is killed: they lose a checkpoint.
        _SHUTDOWN_TIMEOUT: str(max(spec.grace_period_s - _MARGIN_S, 1)),
    }
    given = _user_variables(spec)
    return {name: value for name, value in variables.items() if name not in given}


def _user_variables(spec: ReplicaSpec) -> frozenset[str]:
    containers = spec.template["spec"]["containers"]
    return frozenset(
        variable.get("name")
        for container in containers
        if container["name"] == spec.container
        for variable in container.get("env") or ()
    )
