"""The field ``elasticPolicy`` of PyTorch's and Paddle's jobs: schema, rules and checks.

The framework applies it.
"""

from collections.abc import Sequence
from typing import Final

from dlctl.api.job import ReplicaSpec
from dlctl.api.json_types import JSON
from dlctl.dialects.field_reader import MAX_INT32, MAX_PORT, MAX_REPLICAS, FieldReader
from dlctl.dialects.pods import pod_schema
from dlctl.dialects.schema_parts import int32
from dlctl.errors import InvalidJobError

Specs = Sequence[ReplicaSpec]

# A bound that the server's cost estimate of rules requires.
_MAX_RDZV_CONF: Final = 64
_FIELD: Final = "elasticPolicy"
_MIN_MAX_RULE: Final[JSON] = {
    "rule": "!has(self.elasticPolicy) || !has(self.elasticPolicy.minReplicas) || "
    "!has(self.elasticPolicy.maxReplicas) || "
    # Such a maximum is an error of its own.
    "self.elasticPolicy.maxReplicas < 1 || "
    "self.elasticPolicy.minReplicas <= self.elasticPolicy.maxReplicas",
    "message": "must not be more than maxReplicas",
    "fieldPath": ".elasticPolicy.minReplicas",
}
PADDLE_RULES: Final[Sequence[JSON]] = (_MIN_MAX_RULE,)
PYTORCH_RULES: Final[Sequence[JSON]] = (
    _MIN_MAX_RULE,
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
    pair = {"type": "object", "properties": {name: _string() for name in ("key", "value")}}
    return _schema(
        {
            "rdzvBackend": _string("Rendezvous backend; c10d by default."),
            "rdzvHost": _string("Rendezvous host; the first worker by default."),
            "rdzvPort": {**int32(1), "maximum": MAX_PORT},
            "rdzvId": _string(),
            "rdzvConf": {"type": "array", "maxItems": _MAX_RDZV_CONF, "items": pair},
            "standalone": {"type": "boolean"},
            "nProcPerNode": {**int32(1), "description": "Write nprocPerNode in spec instead."},
        }
    )


def check_paddle(fields: FieldReader, specs: Specs) -> None:
    _check_limits(fields)


def check_pytorch(fields: FieldReader, specs: Specs) -> None:
    _check_replicas(fields, specs)
    fields.string("nprocPerNode")
    if _FIELD not in fields:
        return
    _check_limits(fields)
    _check_rendezvous(fields.object(_FIELD))
    if not any(spec.type == "worker" for spec in specs):
        message = "needs replicas of the type Worker: add it to pytorchReplicaSpecs"
        raise InvalidJobError(message, field=fields.path_of(_FIELD))
    policy = fields.object(_FIELD)
    if "nprocPerNode" in fields and "nProcPerNode" in policy:
        message = "must not be used with spec.nprocPerNode: leave it out"
        raise InvalidJobError(message, field=policy.path_of("nProcPerNode"))


def _check_replicas(fields: FieldReader, specs: Specs) -> None:
    for spec in specs:
        at = f"{fields.path_of('pytorchReplicaSpecs')}.{spec.type.capitalize()}.replicas"
        if spec.type == "master" and spec.replicas != 1:
            message = f"is {spec.replicas}, but there must be exactly 1 Master"
            raise InvalidJobError(message, field=at)
        if spec.type == "worker" and spec.replicas < 1:
            raise InvalidJobError("is 0, but must be 1 or more", field=at)


def _check_rendezvous(policy: FieldReader) -> None:
    """Reject rendezvous settings of a wrong type."""
    policy.port("rdzvPort", 1)
    policy.boolean("standalone", default=False)
    policy.optional_integer("nProcPerNode", minimum=1, maximum=MAX_REPLICAS)
    for name in ("rdzvBackend", "rdzvHost", "rdzvId"):
        policy.string(name)
    _check_objects(policy, "rdzvConf")


def _check_limits(fields: FieldReader) -> None:
    policy = fields.object(_FIELD)
    minimum = policy.optional_integer("minReplicas", maximum=MAX_REPLICAS)
    maximum = policy.optional_integer("maxReplicas", minimum=1, maximum=MAX_REPLICAS)
    policy.optional_integer("maxRestarts", maximum=MAX_INT32)
    _check_objects(policy, "metrics")
    if minimum is not None and maximum is not None and minimum > maximum:
        message = f"is {minimum}, but must not be more than maxReplicas, which is {maximum}"
        raise InvalidJobError(message, field=policy.path_of("minReplicas"))


def _check_objects(policy: FieldReader, name: str) -> None:
    """Refuse what is not a list of objects; each is one if it can be read."""
    for _ in policy.items(name) if name in policy else ():
        pass


def _schema(more: JSON) -> JSON:
    bound = {"maximum": MAX_REPLICAS}
    return {
        "type": "object",
        "description": "Bounds of the number of workers; each defaults to the other.",
        "properties": {
            # Autoscalers may scale to zero where the cluster's feature gate allows it.
            "minReplicas": {**int32(0), **bound},
            "maxReplicas": {**int32(1), **bound},
            "maxRestarts": int32(0),
            "metrics": {
                "type": "array",
                "description": "Metrics of the HorizontalPodAutoscaler, as in autoscaling/v2.",
                "items": pod_schema.type_schema("MetricSpec", with_required=True),
            },
            **more,
        },
    }


def _string(description: str = "") -> JSON:
    return {"type": "string", "description": description} if description else {"type": "string"}
