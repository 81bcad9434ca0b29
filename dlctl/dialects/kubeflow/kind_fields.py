"""What each of Kubeflow's kinds has in its spec beside replicas and policies, and its checks.

They are there twice, side by side: rules in CEL for when a job is submitted, and Python for when it
is read from a server that went by no rules. Both refuse the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kubeflow import cel_rules, elastic_policy_schema
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.errors import InvalidJobError, quoted
from dlctl.frameworks.kubeflow.job import KubeflowJob

JSON = dict[str, Any]
Specs = Sequence[ReplicaSpec]
_SUCCESS_POLICIES: Final = ("", "AllWorkers")
_JOB_MODES: Final = ("", "MXTrain", "MXTune")


def _no_check(fields: FieldReader, specs: Specs) -> None:
    return None


@attrs.frozen
class KindFields:
    """The fields of one kind; ``check`` raises InvalidJobError for what its rules refuse."""

    properties: Mapping[str, JSON] = attrs.field(factory=dict)
    # Of the spec, and of the map of replica specs in it.
    rules: Sequence[JSON] = ()
    replica_rules: Sequence[JSON] = ()
    check: Callable[[FieldReader, Specs], None] = _no_check


def fields_of(framework: type[KubeflowJob]) -> KindFields:
    return _BY_KIND.get(framework.job_type, KindFields())


def _check_tensorflow(fields: FieldReader, specs: Specs) -> None:
    if {"chief", "master"} <= {spec.type for spec in specs}:
        message = "lists Chief and Master, which exclude each other: list one of them"
        raise InvalidJobError(message, field=fields.path_of("tfReplicaSpecs"))
    _check_enum(fields, "successPolicy", _SUCCESS_POLICIES)


def _check_mxnet(fields: FieldReader, specs: Specs) -> None:
    _check_enum(fields, "jobMode", _JOB_MODES)


def _check_mpi(fields: FieldReader, specs: Specs) -> None:
    fields.integer("slotsPerWorker", 1, minimum=1)
    fields.string("mainContainer")


def _check_enum(fields: FieldReader, name: str, options: Sequence[str]) -> None:
    value = fields.string(name)
    if value not in options:
        shown_options = ", ".join(option for option in options if option)
        message = f"is {quoted(value)}, but must be one of {shown_options}"
        raise InvalidJobError(message, field=fields.path_of(name))


_TENSORFLOW: Final = KindFields(
    {
        "successPolicy": {
            "type": "string",
            "enum": list(_SUCCESS_POLICIES),
            "description": "Whether worker 0 decides, or AllWorkers do, where there is no chief.",
        },
        "enableDynamicWorker": {
            "type": "boolean",
            "description": "Whether workers may come and go.",
        },
        # tf-operator's first draft of this form had it here.
        "restartPolicy": {
            "type": "string",
            "enum": ["", *(policy.value for policy in RestartPolicy)],
            "description": "Of replicas that have none of their own.",
        },
    },
    replica_rules=(
        {
            "rule": "self.filter(t, t.lowerAscii() in ['chief', 'master']).size() <= 1",
            "message": "Chief and Master exclude each other: list one of them",
        },
    ),
    check=_check_tensorflow,
)
_PYTORCH: Final = KindFields(
    {
        "nprocPerNode": {
            "type": "string",
            "description": "Processes on each node: a number, auto, cpu or gpu; auto if left out.",
        },
        "elasticPolicy": elastic_policy_schema.pytorch_schema(),
    },
    rules=elastic_policy_schema.PYTORCH_RULES,
    replica_rules=(cel_rules.at_most_one("Master"), cel_rules.at_least_one("Worker")),
    check=elastic_policy_schema.check_pytorch,
)
_PADDLE: Final = KindFields(
    {"elasticPolicy": elastic_policy_schema.paddle_schema()},
    rules=elastic_policy_schema.PADDLE_RULES,
    check=elastic_policy_schema.check_paddle,
)
_MXNET: Final = KindFields(
    # In the list form it has other values.
    {"jobMode": {"type": "string", "description": "MXTrain, or MXTune to tune the compiler."}},
    rules=(
        {
            "rule": "!has(self.mxReplicaSpecs) || !has(self.jobMode) || "
            f"self.jobMode in {list(_JOB_MODES)}",
            "message": "must be one of MXTrain, MXTune",
            "fieldPath": ".jobMode",
        },
    ),
    check=_check_mxnet,
)
_MPI: Final = KindFields(
    {
        "slotsPerWorker": {
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "description": "Processes that a worker has room for; 1 if left out.",
        },
        "mainContainer": {
            "type": "string",
            "description": "Container of a worker that commands run in; else the pod's default.",
        },
    },
    check=_check_mpi,
)
_BY_KIND: Final[Mapping[str, KindFields]] = {
    "TFJob": _TENSORFLOW,
    "PyTorchJob": _PYTORCH,
    "PaddleJob": _PADDLE,
    "MPIJob": _MPI,
    "MXJob": _MXNET,
}
