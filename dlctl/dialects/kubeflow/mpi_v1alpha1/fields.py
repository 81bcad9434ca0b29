"""The fields that MPIJob v1alpha1 alone has, and the rules about them.

They are in the schemas of all versions, so that a stored object keeps them.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects import schema_parts
from dlctl.dialects.kubeflow import cel_rules
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.frameworks.kubeflow.mpi_ssh_pods import SSH_PATH_FIELD

_ANY_OBJECT: Final = {"type": "object", **PRESERVE_UNKNOWN}
FIELDS: Final[JSON] = {
    "template": {**_ANY_OBJECT, "description": "Of v1alpha1: the launcher and the workers."},
    "replicas": {**schema_parts.int32(0), "description": "Of v1alpha1: the number of workers."},
    **{
        name: {**schema_parts.int32(minimum), "description": "Of v1alpha1."}
        for name, minimum in (
            ("gpus", 0),
            ("gpusPerNode", 1),
            ("processingUnits", 0),
            ("processingUnitsPerNode", 1),
        )
    },
    "processingResourceType": {"type": "string", "description": "Of v1alpha1: the resource."},
    "jobPriority": {"type": "string", "description": "Of v1alpha1; without effect."},
    "launcherOnMaster": {"type": "boolean", "description": "Of v1alpha1."},
    # Two that arena writes.
    "launcherResources": {**_ANY_OBJECT, "description": "Of v1alpha1, as arena has it."},
    "mountsOnLauncher": {"type": "boolean", "description": "Of v1alpha1; without effect."},
}
_OTHERS: Final = sorted(set(FIELDS) - {"template"})
# Jobs of v2beta1 may be stored with these fields, which nobody reads, and get a status through v1.
_IS_V2BETA1: Final = f"has(self.{SSH_PATH_FIELD})"
SPECS_REQUIRED: Final = cel_rules.replica_specs_required("mpiReplicaSpecs", "template")
RULES: Final = (
    SPECS_REQUIRED,
    {
        "rule": f"{_IS_V2BETA1} || !has(self.mpiReplicaSpecs) || !has(self.template)",
        "message": "mpiReplicaSpecs have templates of their own: remove this one, of v1alpha1",
        "fieldPath": ".template",
    },
    *(
        {
            "rule": f"{_IS_V2BETA1} || !has(self.{field}) || !has(self.mpiReplicaSpecs)",
            "message": "is a field of v1alpha1, where spec.template is: remove it",
            "fieldPath": f".{field}",
        }
        for field in _OTHERS
    ),
)
