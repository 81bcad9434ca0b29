"""The field ``elasticPolicy`` of PyTorch's and Paddle's jobs: its schema, its rules, its checks.

What is made of it is the framework's.
"""

from collections.abc import Sequence
from typing import Any, Final

from dlctl.api.job import ReplicaSpec
from dlctl.dialects import pod_schema
from dlctl.dialects.wire import MAX_PORT, MAX_REPLICAS, Fields
from dlctl.errors import InvalidJobError

JSON = dict[str, Any]
Specs = Sequence[ReplicaSpec]

# A bound for the rules of the server, which limits their cost.
_MAX_PAIRS: Final = 64
_FIELD: Final = "elasticPolicy"
_LIMITS: Final[JSON] = {
    "rule": "!has(self.elasticPolicy) || !has(self.elasticPolicy.minReplicas) || "
    "!has(self.elasticPolicy.maxReplicas) || "
    "self.elasticPolicy.minReplicas <= self.elasticPolicy.maxReplicas",
    "message": "must not be more than maxReplicas",
    "fieldPath": ".elasticPolicy.minReplicas",
}
PADDLE_RULES: Final[Sequence[JSON]] = (_LIMITS,)
PYTORCH_RULES: Final[Sequence[JSON]] = (
    _LIMITS,
    {
        "rule": "!has(self.elasticPolicy) || !has(self.pytorchReplicaSpecs) || "
        "'Worker' in self.pytorchReplicaSpecs",
        "message": "needs replicas of the type Worker: add it to pytorchReplicaSpecs",
        "fieldPath": ".elasticPolicy",
    },
    {
        "rule": "!has(self.nprocPerNode) || !has(self.elasticPolicy) || "
        "!has(self.elasticPolicy.nProcPerNode)",
        "message": "must not be used with spec.nprocPerNode: leave it out",
        "fieldPath": ".elasticPolicy.nProcPerNode",
        "reason": "FieldValueForbidden",
    },
)


def paddle_schema() -> JSON:
    return _schema({})


def pytorch_schema() -> JSON:
    pair = {"type": "object", "properties": {name: _text() for name in ("key", "value")}}
    return _schema(
        {
            "rdzvBackend": _text("What processes meet by; c10d if left out."),
            "rdzvHost": _text("Where they meet; the first worker if left out."),
            "rdzvPort": {**_number(1), "maximum": MAX_PORT},
            "rdzvId": _text(),
            "rdzvConf": {"type": "array", "maxItems": _MAX_PAIRS, "items": pair},
            "standalone": {"type": "boolean"},
            "nProcPerNode": {**_number(1), "description": "Write nprocPerNode in spec instead."},
        }
    )


def check_paddle(fields: Fields, specs: Specs) -> None:
    _check_limits(fields)


def check_pytorch(fields: Fields, specs: Specs) -> None:
    _check_numbers(fields, specs)
    fields.text("nprocPerNode")
    if _FIELD not in fields:
        return
    _check_limits(fields)
    _check_meeting(fields.object(_FIELD))
    if not any(spec.type == "worker" for spec in specs):
        message = "needs replicas of the type Worker: add it to pytorchReplicaSpecs"
        raise InvalidJobError(message, field=fields.at(_FIELD))
    policy = fields.object(_FIELD)
    if "nprocPerNode" in fields and "nProcPerNode" in policy:
        message = "must not be used with spec.nprocPerNode: leave it out"
        raise InvalidJobError(message, field=policy.at("nProcPerNode"))


def _check_numbers(fields: Fields, specs: Specs) -> None:
    for spec in specs:
        at = f"{fields.at('pytorchReplicaSpecs')}.{spec.type.capitalize()}.replicas"
        if spec.type == "master" and spec.replicas != 1:
            message = f"is {spec.replicas}, but there must be exactly 1 Master"
            raise InvalidJobError(message, field=at)
        if spec.type == "worker" and spec.replicas < 1:
            raise InvalidJobError("is 0, but must be 1 or more", field=at)


def _check_meeting(policy: Fields) -> None:
    """Refuse what is of a wrong type in how processes meet."""
    policy.port("rdzvPort", 1)
    policy.boolean("standalone", default=False)
    policy.optional_integer("nProcPerNode", least=1, most=MAX_REPLICAS)
    for name in ("rdzvBackend", "rdzvHost", "rdzvId"):
        policy.text(name)
    if "rdzvConf" in policy:
        policy.items("rdzvConf")


def _check_limits(fields: Fields) -> None:
    policy = fields.object(_FIELD)
    least = policy.optional_integer("minReplicas", most=MAX_REPLICAS)
    most = policy.optional_integer("maxReplicas", most=MAX_REPLICAS)
    policy.optional_integer("maxRestarts", most=2**31 - 1)
    if "metrics" in policy:
        policy.items("metrics")
    if least is not None and most is not None and least > most:
        message = f"is {least}, but must not be more than maxReplicas, which is {most}"
        raise InvalidJobError(message, field=policy.at("minReplicas"))


def _schema(more: JSON) -> JSON:
    limit = {**_number(1), "maximum": MAX_REPLICAS}
    return {
        "type": "object",
        "description": "How many workers there may be; one limit alone stands for both.",
        "properties": {
            "minReplicas": limit,
            "maxReplicas": limit,
            "maxRestarts": _number(0),
            "metrics": {
                "type": "array",
                "description": "What a HorizontalPodAutoscaler goes by, as in autoscaling/v2.",
                "items": pod_schema.of_type("MetricSpec"),
            },
            **more,
        },
    }


def _number(least: int) -> JSON:
    return {"type": "integer", "format": "int32", "minimum": least}


def _text(description: str = "") -> JSON:
    return {"type": "string", "description": description} if description else {"type": "string"}
