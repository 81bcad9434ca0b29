"""Kubeflow's kinds: the framework and the API of each.

Fields are validated twice with the same result: by CEL rules when a job is submitted, and in Python
when it is read from a server without these rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.dialect import Dialect
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kind import Kind, make_kind
from dlctl.dialects.kubeflow import (
    cel_rules,
    elastic_policy_field,
    list_forms,
    replica_map_schema,
)
from dlctl.dialects.kubeflow.kind import GROUP, TRAINING_OPERATOR, KubeflowKind
from dlctl.dialects.kubeflow.kind_schema import KindSchema
from dlctl.dialects.kubeflow.messages import KindMessages
from dlctl.dialects.kubeflow.mpi_v1alpha1 import fields as mpi_v1alpha1
from dlctl.dialects.kubeflow.mpi_v1alpha1.dialect import MPIJobV1alpha1
from dlctl.dialects.kubeflow.mpi_v2beta1 import fields as mpi_v2beta1
from dlctl.dialects.kubeflow.mpi_v2beta1 import version_rules
from dlctl.dialects.kubeflow.mpi_v2beta1.dialect import MPIJobV2beta1
from dlctl.dialects.kubeflow.mpi_v2beta1.kind import MPI_V2BETA1
from dlctl.dialects.kubeflow.mpi_v2beta1.spec_authors import MPIJobObject
from dlctl.dialects.kubeflow.mpi_v2beta1.version_choice import choose_version
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.dialects.kubeflow.replica_rules import ReplicaRules
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.kubeflow.jax import JAXJob
from dlctl.frameworks.kubeflow.mpi import MPIJob
from dlctl.frameworks.kubeflow.mxnet import TUNER_KEY, KubeflowMXJob
from dlctl.frameworks.kubeflow.paddle import PaddleJob
from dlctl.frameworks.kubeflow.pytorch import PyTorchJob
from dlctl.frameworks.kubeflow.tensorflow import KubeflowTFJob
from dlctl.frameworks.kubeflow.xgboost import XGBoostJob

Specs = Sequence[ReplicaSpec]
_SUCCESS_POLICIES: Final = ("", "AllWorkers")
_JOB_MODES: Final = ("", "MXTrain", "MXTune")
# Fields of pytorch-operator's list form; it ignored ``backend`` and the ``masterPort`` beside it.
_LIST_STRINGS: Final = (
    "RuntimeId", "pytorchImage", "schedulerName", "jobMode", "cleanupPodPolicy", "backend"
)  # fmt: skip
_MPI_DISTRIBUTIONS: Final = ("", "OpenMPI")
# The reason of kinds whose deletion training-operator reports as that of a pod.
_DELETED_AS_POD: Final = "SuccessfulDeletePod"


def served_kinds(frameworks: Mapping[str, type[DLJob]]) -> Iterator[Kind]:
    """Yield Kubeflow's kinds, which are served whatever frameworks are installed."""
    for kind in _KINDS:
        dialects = dict(_dialects(kind))
        yield make_kind(
            kind.group,
            kind.name,
            dialects,
            metric_label=kind.metric_label,
            choose_version=kind.choose_version,
            object_type=kind.object_type,
        )
    yield make_kind(
        list_forms.TENSORFLOW_GROUP, "TfJob", {"v1alpha1": list_forms.first_tf_operator()}
    )


def _dialects(kind: KubeflowKind) -> Iterator[tuple[str, Dialect]]:
    """Yield the versions of a kind; the first one is stored."""
    yield "v1", ReplicaMap(kind)
    if kind.list_form is not None:
        yield "v1alpha1", kind.list_form(kind)
    for version, form in kind.other_forms.items():
        yield version, form(kind)
    # They have the form of the first version and are read as such: the version is not stored.
    for version in kind.older_versions:
        yield version, ReplicaMap(kind, is_v1=False)


def _check_tensorflow(fields: FieldReader, specs: Specs) -> None:
    if {"chief", "master"} <= {spec.type for spec in specs}:
        message = "lists Chief and Master, which exclude each other: list one of them"
        raise InvalidJobError(message, field=fields.path_of("tfReplicaSpecs"))
    fields.choice("successPolicy", _SUCCESS_POLICIES)


def _check_xgboost_operator(fields: FieldReader, specs: Specs) -> None:
    fields.reject_twice("runPolicy")


def _check_mxnet(fields: FieldReader, specs: Specs) -> None:
    fields.choice("jobMode", _JOB_MODES)


def _check_mpi(fields: FieldReader, specs: Specs) -> None:
    fields.integer("slotsPerWorker", 1, minimum=1)
    fields.string("mainContainer")
    fields.choice("mpiDistribution", _MPI_DISTRIBUTIONS)


_TENSORFLOW: Final = KubeflowKind(
    framework=KubeflowTFJob,
    field_prefix="tf",
    port_name="tfjob-port",
    metric_label="tensorflow",
    older_versions=("v1alpha2", "v1beta1", "v1beta2"),
    list_form=list_forms.tf_operator_v1alpha1,
    replicas=ReplicaRules(
        # From tf-operator's first draft of the map form.
        type_aliases={"eval": "evaluator"},
        type_names={"ps": "PS"},
    ),
    schema=KindSchema(
        older_defaults={"cleanPodPolicy": "Running"},
        spec_properties={
            "successPolicy": {
                "type": "string",
                "enum": list(_SUCCESS_POLICIES),
                "description": "Without a chief: whether worker 0 (empty) or AllWorkers must "
                "succeed.",
            },
            "enableDynamicWorker": {
                "type": "boolean",
                "description": "Whether the number of workers may change.",
            },
            # tf-operator's first draft of this form had it here.
            "restartPolicy": {
                "type": "string",
                "enum": ["", *(policy.value for policy in RestartPolicy)],
                "description": "Default restart policy of the replicas.",
            },
        },
        replica_rules=(
            {
                "rule": "self.filter(t, t.lowerAscii() in ['chief', 'master']).size() <= 1",
                "message": "Chief and Master exclude each other: list one of them",
            },
        ),
    ),
    check=_check_tensorflow,
    messages=KindMessages(namespaced=lambda _: True, failed_subject="TFJob {key} has"),
)
_PYTORCH: Final = KubeflowKind(
    framework=PyTorchJob,
    field_prefix="pytorch",
    port_name="pytorchjob-port",
    metric_label="pytorch",
    older_versions=("v1alpha2", "v1beta1", "v1beta2"),
    list_form=list_forms.pytorch_operator_v1alpha1,
    is_scalable=True,
    replicas=ReplicaRules(default_restart_policy="OnFailure"),
    schema=KindSchema(
        list_properties={
            **{name: {"type": "string"} for name in _LIST_STRINGS},
            "masterPort": {"x-kubernetes-int-or-string": True},
            "terminationPolicy": {"type": "object", **PRESERVE_UNKNOWN},
        },
        spec_properties={
            "nprocPerNode": {
                "type": "string",
                "description": "Processes per node: a number, auto, cpu or gpu; auto by default.",
            },
        },
        replica_rules=(cel_rules.at_most_one("Master"), cel_rules.at_least_one("Worker")),
        v1_properties={"elasticPolicy": elastic_policy_field.pytorch_schema()},
        v1_rules=elastic_policy_field.PYTORCH_RULES,
    ),
    check=elastic_policy_field.check_pytorch,
    messages=KindMessages(ttl_deletion_reason=_DELETED_AS_POD),
)
_XGBOOST: Final = KubeflowKind(
    framework=XGBoostJob,
    field_prefix="xgb",
    port_name="xgboostjob-port",
    metric_label="xgboost",
    # As in xgboost-operator.
    container_aliases=["xgboostjob"],
    messages=KindMessages(counts_restarts=True, emits_unseen_run=True),
)
_XGBOOST_OPERATOR: Final = attrs.evolve(
    _XGBOOST,
    group="xgboostjob.kubeflow.org",
    older_versions=("v1alpha1",),
    # training-operator never had it.
    metric_label="",
    controller_name="xgboostjob-operator",
    label_prefix="",
    operator_label=("group-name", GROUP),
    ignores_unknown_fields=True,
    schema=KindSchema(
        spec_properties={"RunPolicy": replica_map_schema.former_run_policy()},
        spec_rules=(
            {
                "rule": "!(has(self.runPolicy) && has(self.RunPolicy))",
                "message": "runPolicy is given twice, as runPolicy and RunPolicy: keep one of them",
            },
        ),
        # A field of its CRD, beside those that every kind may have in spec.
        ignored_fields=("schedulingPolicy",),
    ),
    check=_check_xgboost_operator,
)
_PADDLE: Final = KubeflowKind(
    framework=PaddleJob,
    field_prefix="paddle",
    port_name="master",
    metric_label="paddle",
    is_scalable=True,
    replicas=ReplicaRules(default_restart_policy="OnFailure"),
    schema=KindSchema(
        spec_properties={"elasticPolicy": elastic_policy_field.paddle_schema()},
        spec_rules=elastic_policy_field.PADDLE_RULES,
    ),
    check=elastic_policy_field.check_paddle,
    messages=KindMessages(ttl_deletion_reason=_DELETED_AS_POD),
)
_JAX: Final = KubeflowKind(
    framework=JAXJob,
    field_prefix="jax",
    port_name="jaxjob-port",
    metric_label="jax",
    is_scalable=True,
    messages=KindMessages(ttl_deletion_reason=_DELETED_AS_POD),
)
_MPI: Final = KubeflowKind(
    framework=MPIJob,
    field_prefix="mpi",
    port_name="mpi-port",
    metric_label="mpi",
    older_versions=("v1alpha2",),
    copies_finalizers=False,
    has_services=False,
    requires_container_name=False,
    controllers=(TRAINING_OPERATOR, mpi_v2beta1.MPI_OPERATOR),
    has_other_controllers=True,
    choose_version=choose_version,
    object_type=MPIJobObject,
    other_forms={"v2beta1": lambda _: MPIJobV2beta1(MPI_V2BETA1), "v1alpha1": MPIJobV1alpha1},
    replicas=ReplicaRules(
        default_counts={"worker": 0},
        unindexed_types=frozenset({"launcher"}),
        # If mpirun started with the workers, it would fail because some of them are missing.
        gated_types=frozenset({"launcher"}),
    ),
    schema=KindSchema(
        older_defaults={"backoffLimit": 6},
        # Workers were restarted without end, as those of a StatefulSet.
        older_restart_policy="OnFailure",
        shows_age_first=True,
        shows_version=True,
        requires_replica_specs=False,
        foreign_fields={
            **dict.fromkeys(set(mpi_v2beta1.FIELDS) - {"slotsPerWorker"}, "v2beta1"),
            **dict.fromkeys(mpi_v1alpha1.FIELDS, "v1alpha1"),
        },
        spec_properties={
            **mpi_v1alpha1.FIELDS,
            **mpi_v2beta1.FIELDS,
            "mainContainer": {
                "type": "string",
                "description": "Container of a worker in which commands run; else the pod's "
                "default.",
            },
            # A field of v1alpha2; the launcher's files are for Open MPI.
            "mpiDistribution": {
                "type": "string",
                "enum": list(_MPI_DISTRIBUTIONS),
                "description": "OpenMPI, the only supported one.",
            },
        },
        spec_rules=(
            *version_rules.V1_RULES,
            *mpi_v1alpha1.RULES,
            # v2beta1 allows 0.
            {
                "rule": f"has(self.{mpi_v2beta1.FORM_FIELD}) || "
                "self.?slotsPerWorker.orValue(1) >= 1",
                "message": "must be 1 or more",
                "fieldPath": ".slotsPerWorker",
            },
        ),
    ),
    check=_check_mpi,
    messages=KindMessages(
        namespaced=lambda _: False,
        counts_restarts=True,
        reason_by_condition={"Failed": "MPIJobMPIJobFailed"},
        emits_exit_codes=False,
        # mpi-operator's reason.
        name_conflict_reason="ErrResourceExists",
        # Misspelt by training-operator; scripts look for what it writes.
        template_restart_policy_reason="SettedPodTemplateRestartPolicy",
        other_scheduler_reason="SettedPodTemplateSchedulerName",
        uncounted_after_finish=frozenset({"worker"}),
    ),
)
_MXNET: Final = KubeflowKind(
    framework=KubeflowMXJob,
    field_prefix="mx",
    port_name="mxjob-port",
    metric_label="mxnet",
    older_versions=("v1alpha2", "v1beta1"),
    list_form=list_forms.mx_operator_v1alpha1,
    # A field before v1.
    annotation_by_field={"label": TUNER_KEY},
    replicas=ReplicaRules(
        type_names={"tunertracker": "TunerTracker", "tunerserver": "TunerServer"},
    ),
    schema=KindSchema(
        older_defaults={"cleanPodPolicy": "All"},
        # A field in mxnet-operator's own examples.
        ignored_fields=("successPolicy",),
        spec_properties={
            # In the list form it has other values.
            "jobMode": {
                "type": "string",
                "description": "MXTrain, or MXTune to tune the compiler.",
            },
        },
        spec_rules=(
            {
                "rule": "!has(self.mxReplicaSpecs) || !has(self.jobMode) || "
                f"self.jobMode in {list(_JOB_MODES)}",
                "message": "must be one of MXTrain, MXTune",
                "fieldPath": ".jobMode",
            },
        ),
    ),
    check=_check_mxnet,
    messages=KindMessages(
        namespaced=lambda _: False,
        failed_subject="mxjob {name} is",
        ttl_deletion_reason=_DELETED_AS_POD,
    ),
)
_KINDS: Final = (
    _TENSORFLOW, _PYTORCH, _XGBOOST, _PADDLE, _JAX, _MPI, _MXNET, _XGBOOST_OPERATOR
)  # fmt: skip
