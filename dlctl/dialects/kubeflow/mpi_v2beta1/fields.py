"""The fields that v1 and v2beta1 of MPIJob do not share; each has a place in the schemas of both.

So a stored object keeps its fields whatever version writes it.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects import schema_parts
from dlctl.dialects.kubeflow.mpi_v1alpha1 import fields as mpi_v1alpha1
from dlctl.dialects.run_policy_field import LEGACY_SPEC_FIELDS
from dlctl.frameworks.kubeflow.mpi_implementations import MPIImplementation
from dlctl.frameworks.kubeflow.mpi_ssh_pods import DEFAULT_SSH_PATH, SSH_PATH_FIELD

# In every spec that a request of v2beta1 wrote, because that version alone has a default for it.
FORM_FIELD: Final = SSH_PATH_FIELD
MPI_OPERATOR: Final = "kubeflow.org/mpi-operator"
AT_STARTUP: Final = "AtStartup"
WAIT_FOR_WORKERS: Final = "WaitForWorkersReady"
# The types of the fields, as v1 has them, too.
FIELDS: Final[JSON] = {
    "slotsPerWorker": {
        **schema_parts.int32(0),
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
DEFAULTS: Final[JSON] = {
    "slotsPerWorker": 1,
    "runLauncherAsWorker": False,
    FORM_FIELD: DEFAULT_SSH_PATH,
    "launcherCreationPolicy": AT_STARTUP,
    "mpiImplementation": MPIImplementation.OPEN_MPI.value,
}
# The fields that v1 alone has.
V1_FIELDS: Final = ("mainContainer", "mpiDistribution", *LEGACY_SPEC_FIELDS)
_KEPT_TYPES: Final = {"mainContainer": "string", "mpiDistribution": "string"} | {
    name: "string" if name == "cleanPodPolicy" else "integer" for name in LEGACY_SPEC_FIELDS
}
# A patch of this version does not drop them from a job of v1.
KEPT_FIELDS: Final = {
    name: {"type": type_, "description": "Of v1; without effect in v2beta1."}
    for name, type_ in _KEPT_TYPES.items()
} | mpi_v1alpha1.FIELDS
