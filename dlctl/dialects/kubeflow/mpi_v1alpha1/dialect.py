"""MPIJob v1alpha1, run as v1: its spec is read in that form; its status has two more fields."""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.job import Job, Replica, ReplicaSpec
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.status.job_status import JobState, JobStatus
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kubeflow.mpi_v1alpha1.fields import FIELDS, SPECS_REQUIRED
from dlctl.dialects.kubeflow.mpi_v1alpha1.map_form import as_map, run_policy
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.errors import InvalidJobError

_TEMPLATES: Final = tuple(f"spec.mpiReplicaSpecs.{type_}" for type_ in ("Launcher", "Worker"))
# Its message names the field of this form.
_OWN_REQUIRED: Final = {
    **SPECS_REQUIRED,
    "message": "template is missing: give the pod template of the launcher and the workers",
}
_LAUNCHER_STATUS_BY_STATE: Final = {
    JobState.SUCCEEDED: "Succeeded",
    JobState.FAILED: "Failed",
}


@attrs.frozen
class MPIJobV1alpha1(ReplicaMap):
    """Jobs of mpi-operator 0.2, and of arena."""

    def matches(self, spec: Any) -> bool:
        return isinstance(spec, Mapping) and "template" in spec and not super().matches(spec)

    def read(self, obj: DecodedObject) -> Job:
        try:
            job = super().read(msgspec.structs.replace(obj, spec=as_map(obj.spec)))
        except InvalidJobError as error:
            raise _in_own_words(error) from None
        return attrs.evolve(job, replica_specs=tuple(map(_with_retries, job.replica_specs)))

    def spec_schema(self) -> ReadOnlyJSON:
        schema = super().spec_schema()
        rules = schema["x-kubernetes-validations"]
        own = [_OWN_REQUIRED if rule == SPECS_REQUIRED else rule for rule in rules]
        return {**schema, **PRESERVE_UNKNOWN, "x-kubernetes-validations": own}

    @property
    def ignores_unknown_fields(self) -> bool:
        return True

    @property
    def foreign_fields(self) -> Mapping[str, str]:
        return {n: v for n, v in super().foreign_fields.items() if n not in FIELDS}

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        if not self.matches(obj.spec):
            # In the form of v1 already.
            return super().run_policy(obj)
        policy = run_policy(FieldReader(obj.spec, "spec"))
        return super().run_policy(msgspec.structs.replace(obj, spec={"runPolicy": policy}))

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return {
            **super().pod_labels(job, replica),
            "group_name": "kubeflow.org",
            "mpi_job_name": job.key.name,
            "mpi_role_type": replica.type,
        }

    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        running = {
            each.type: each.count_by_state.get(JobState.RUNNING, 0)
            for each in status.replica_statuses
        }
        launcher = _LAUNCHER_STATUS_BY_STATE.get(status.state) or (
            "Active" if running.get("launcher") else None
        )
        own = {"launcherStatus": launcher, "workerReplicas": running.get("worker")}
        return {**super().write_status(status), **{name: v for name, v in own.items() if v}}


def _in_own_words(error: InvalidJobError) -> InvalidJobError:
    """Return an error about the one template of this form."""
    field, message = error.field, str(error).removeprefix(f"{error.field}: ")
    for prefix in _TEMPLATES:
        if field.startswith(prefix):
            field = "spec" + field.removeprefix(prefix)
    return InvalidJobError(message, field=field)


def _with_retries(spec: ReplicaSpec) -> ReplicaSpec:
    """Return a spec whose failures count for the backoff limit, whatever its restart policy."""
    return attrs.evolve(spec, retry_policy=RetryPolicy.ALL)
