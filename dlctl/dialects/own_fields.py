"""What each of Kubeflow's kinds has in its spec beside replicas and policies, and its checks.

They are there twice, side by side: rules in CEL for when a job is submitted, and Python for when it
is read from a server that went by no rules. Both refuse the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import ReplicaSpec
from dlctl.dialects import elastic_policy, map_rules
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.dialects.wire import Fields
from dlctl.errors import InvalidJobError, shown
from dlctl.frameworks.kubeflow.job import KubeflowJob

JSON = dict[str, Any]
Specs = Sequence[ReplicaSpec]
_SUCCESS: Final = ("", "AllWorkers")
_MODES: Final = ("", "MXTrain", "MXTune")


def _nothing_to_check(fields: Fields, specs: Specs) -> None:
    return None


@attrs.frozen
class OwnFields:
    """The fields of one kind; ``check`` raises InvalidJobError for what its rules refuse."""

    properties: Mapping[str, JSON] = attrs.field(factory=dict)
    # Of the spec, and of the map of replica specs in it.
    rules: Sequence[JSON] = ()
    replica_rules: Sequence[JSON] = ()
    check: Callable[[Fields, Specs], None] = _nothing_to_check


def of(framework: type[KubeflowJob]) -> OwnFields:
    return _BY_KIND.get(framework.job_type, OwnFields())


def _check_tensorflow(fields: Fields, specs: Specs) -> None:
    if {"chief", "master"} <= {spec.type for spec in specs}:
        message = "lists Chief and Master, which exclude each other: list one of them"
        raise InvalidJobError(message, field=fields.at("tfReplicaSpecs"))
    _check_option(fields, "successPolicy", _SUCCESS)


def _check_mxnet(fields: Fields, specs: Specs) -> None:
    _check_option(fields, "jobMode", _MODES)


def _check_mpi(fields: Fields, specs: Specs) -> None:
    fields.integer("slotsPerWorker", 1, least=1)
    fields.text("mainContainer")


def _check_option(fields: Fields, name: str, options: Sequence[str]) -> None:
    value = fields.text(name)
    if value not in options:
        known = ", ".join(option for option in options if option)
        message = f"is {shown(value)}, but must be one of {known}"
        raise InvalidJobError(message, field=fields.at(name))


_TENSORFLOW: Final = OwnFields(
    {
        "successPolicy": {
            "type": "string",
            "enum": list(_SUCCESS),
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
_PYTORCH: Final = OwnFields(
    {
        "nprocPerNode": {
            "type": "string",
            "description": "Processes on each node: a number, auto, cpu or gpu; auto if left out.",
        },
        "elasticPolicy": elastic_policy.pytorch_schema(),
    },
    rules=elastic_policy.PYTORCH_RULES,
    replica_rules=(map_rules.one_at_most("Master"), map_rules.one_at_least("Worker")),
    check=elastic_policy.check_pytorch,
)
_PADDLE: Final = OwnFields(
    {"elasticPolicy": elastic_policy.paddle_schema()},
    rules=elastic_policy.PADDLE_RULES,
    check=elastic_policy.check_paddle,
)
_MXNET: Final = OwnFields(
    # In the list form it has other values.
    {"jobMode": {"type": "string", "description": "MXTrain, or MXTune to tune the compiler."}},
    rules=(
        {
            "rule": "!has(self.mxReplicaSpecs) || !has(self.jobMode) || "
            f"self.jobMode in {list(_MODES)}",
            "message": "must be one of MXTrain, MXTune",
            "fieldPath": ".jobMode",
        },
    ),
    check=_check_mxnet,
)
_MPI: Final = OwnFields(
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
_BY_KIND: Final[Mapping[str, OwnFields]] = {
    "TFJob": _TENSORFLOW,
    "PyTorchJob": _PYTORCH,
    "PaddleJob": _PADDLE,
    "MPIJob": _MPI,
    "MXJob": _MXNET,
}
