"""The fields, defaults and rules of MPIJob v2beta1; the defaults mark an object as this form.

v1 has the same fields without defaults, so a stored object keeps them whatever version wrote it.
"""

from collections.abc import Sequence
from typing import Any, Final

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kubeflow.kind import KubeflowKind
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.mpi_implementations import MPIImplementation
from dlctl.frameworks.kubeflow.mpi_ssh import DEFAULT_SSH_PATH, MPISSHJob

JSON = dict[str, Any]
# The field by which an object is recognized: v2beta1 alone has a default for it.
FORM_FIELD: Final = "sshAuthMountPath"
MPI_OPERATOR: Final = "kubeflow.org/mpi-operator"
AT_STARTUP: Final = "AtStartup"
WAIT_FOR_WORKERS: Final = "WaitForWorkersReady"
_MIN_WORKERS_MESSAGE: Final = "must be 1 or more; a job without workers lists no Worker"
# The types of the fields, as v1 has them, too.
FIELDS: Final[JSON] = {
    "slotsPerWorker": {
        "type": "integer",
        "format": "int32",
        "minimum": 0,
        "description": "Processes per worker; 1 by default.",
    },
    "runLauncherAsWorker": {
        "type": "boolean",
        "description": "Whether processes also run in the launcher.",
    },
    FORM_FIELD: {
        "type": "string",
        "maxLength": 4096,
        "pattern": "^[^:]*$",
        "description": "Directory of the SSH keys, in the home of the user that runs the program.",
    },
    "launcherCreationPolicy": {
        "type": "string",
        "maxLength": 63,
        "description": f"{AT_STARTUP}, or {WAIT_FOR_WORKERS}.",
    },
    "mpiImplementation": {
        "type": "string",
        "enum": [each.value for each in MPIImplementation],
        "description": "The MPI implementation in the images.",
    },
}
_DEFAULTS: Final[JSON] = {
    "slotsPerWorker": 1,
    "runLauncherAsWorker": False,
    FORM_FIELD: DEFAULT_SSH_PATH,
    "launcherCreationPolicy": AT_STARTUP,
    "mpiImplementation": MPIImplementation.OPEN_MPI.value,
}


def _check(fields: FieldReader, specs: Sequence[ReplicaSpec]) -> None:
    for spec in specs:
        if spec.type == "worker" and spec.replicas < 1:
            field = f"{fields.path_of('mpiReplicaSpecs')}.Worker.replicas"
            raise InvalidJobError(_MIN_WORKERS_MESSAGE, field=field)


MPI_V2BETA1: Final = KubeflowKind(
    framework=MPISSHJob,
    field_prefix="mpi",
    port_name="ssh",
    metric_label="mpi",
    default_replicas={"worker": 0},
    restart_policy_by_type={"launcher": "OnFailure"},
    restart_policies=("Never", "OnFailure"),
    controllers=(MPI_OPERATOR,),
    unindexed_types=frozenset({"launcher"}),
    # The service has no ports, and pods get none.
    has_services=False,
    has_policies_in_spec=False,
    requires_container_name=False,
    shows_age_first=True,
    spec_properties={
        name: {**schema, "default": _DEFAULTS[name]} for name, schema in FIELDS.items()
    },
    replica_rules=(
        {
            "rule": "!('Worker' in self) || self['Worker'].?replicas.orValue(0) >= 1",
            "message": f"Worker.replicas {_MIN_WORKERS_MESSAGE}",
        },
    ),
    check=_check,
)
