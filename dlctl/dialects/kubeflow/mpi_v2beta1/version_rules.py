"""CEL rules that keep v1 and v2beta1 apart, in the schemas of both.

An update through one version must not drop what only the other one has, nor change which of them
an object seems to be of. :mod:`.version_choice` decides in which version an object is meant.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.dialects.kubeflow.cel_rules import managed_by
from dlctl.dialects.kubeflow.kind import MULTIKUEUE, TRAINING_OPERATOR
from dlctl.dialects.kubeflow.mpi_v2beta1.fields import FIELDS, FORM_FIELD, MPI_OPERATOR, V1_FIELDS

_MANAGED_BY: Final = managed_by("self")
# The others have rules of their own.
_CONTROLLERS: Final = ["", TRAINING_OPERATOR, MPI_OPERATOR, MULTIKUEUE]
_FIELDS_OF_V2BETA1: Final = sorted(set(FIELDS) - {FORM_FIELD, "slotsPerWorker"})


def _not_removed(field: str, message: str) -> JSON:
    return {
        "rule": f"!has(oldSelf.{field}) || has(self.{field})",
        "message": message,
        "fieldPath": f".{field}",
    }


def _only_with_form_field(field: str) -> JSON:
    return {
        "rule": f"!has(self.{field}) || has(self.{FORM_FIELD})",
        "message": "is a field of v2beta1: write apiVersion kubeflow.org/v2beta1",
        "fieldPath": f".{field}",
    }


V1_RULES: Final = (
    _not_removed(
        FORM_FIELD,
        "jobs of v2beta1 have this field, and may have others that v1 lacks: "
        "change this job through kubeflow.org/v2beta1, or delete it first",
    ),
    *map(_only_with_form_field, _FIELDS_OF_V2BETA1),
    {
        "rule": f"{_MANAGED_BY} != '{MPI_OPERATOR}' || has(self.{FORM_FIELD})",
        "message": "is the controller of v2beta1: write apiVersion kubeflow.org/v2beta1",
        "fieldPath": ".runPolicy.managedBy",
    },
    {
        "rule": f"has(self.{FORM_FIELD}) || {_MANAGED_BY} in {_CONTROLLERS}",
        "message": f"must be {TRAINING_OPERATOR}",
        "fieldPath": ".runPolicy.managedBy",
    },
    {
        "rule": f"oldSelf.hasValue() || {_MANAGED_BY} != '{MULTIKUEUE}'",
        "optionalOldSelf": True,
        "message": "MultiKueue copies MPIJobs as v2beta1: write apiVersion kubeflow.org/v2beta1",
        "fieldPath": ".runPolicy.managedBy",
    },
)
V2BETA1_RULES: Final = (
    {
        "rule": f"has(oldSelf.{FORM_FIELD}) == has(self.{FORM_FIELD})",
        "message": "this job was created as v1, and stays one: "
        "change it through kubeflow.org/v1, or delete it first",
    },
    *(
        _not_removed(field, "is a field of v1: change this job through kubeflow.org/v1")
        for field in V1_FIELDS
    ),
)
