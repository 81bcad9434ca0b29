"""The kind of MPIJob v2beta1: its defaults and rules; the defaults mark an object as this form."""

from collections.abc import Sequence
from typing import Final

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kubeflow.kind import KubeflowKind
from dlctl.dialects.kubeflow.kind_schema import KindSchema
from dlctl.dialects.kubeflow.mpi_v1alpha1 import fields as mpi_v1alpha1
from dlctl.dialects.kubeflow.mpi_v2beta1.fields import (
    DEFAULTS,
    FIELDS,
    KEPT_FIELDS,
    MPI_OPERATOR,
    V1_FIELDS,
)
from dlctl.dialects.kubeflow.mpi_v2beta1.version_rules import V2BETA1_RULES
from dlctl.dialects.kubeflow.replica_rules import ReplicaRules
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.mpi_ssh import MPISSHJob

_MIN_WORKERS_MESSAGE: Final = "must be 1 or more; a job without workers lists no Worker"


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
    controllers=(MPI_OPERATOR,),
    has_other_controllers=True,
    copies_finalizers=False,
    # The service has no ports, and pods get none.
    has_services=False,
    requires_container_name=False,
    replicas=ReplicaRules(
        default_counts={"worker": 0},
        restart_policy_by_type={"launcher": "OnFailure"},
        restart_policies=("Never", "OnFailure"),
        unindexed_types=frozenset({"launcher"}),
    ),
    schema=KindSchema(
        has_policies_in_spec=False,
        shows_age_first=True,
        shows_version=True,
        spec_properties={
            **{name: {**schema, "default": DEFAULTS[name]} for name, schema in FIELDS.items()},
            **KEPT_FIELDS,
        },
        spec_rules=V2BETA1_RULES,
        replica_rules=(
            {
                "rule": "!('Worker' in self) || self['Worker'].?replicas.orValue(0) >= 1",
                "message": f"Worker.replicas {_MIN_WORKERS_MESSAGE}",
            },
        ),
        foreign_fields=dict.fromkeys(V1_FIELDS, "v1")
        | dict.fromkeys(mpi_v1alpha1.FIELDS, "v1alpha1"),
    ),
    check=_check,
)
