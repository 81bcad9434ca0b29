"""Parts of the CRD schemas that several dialects share."""

from collections.abc import Sequence
from typing import Final

from dlctl.api import quantities
from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, Resource
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.pods import pod_schema
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN
from dlctl.dialects.status.status_codec import OWN_STATE_FIELD
from dlctl.dialects.value_formats import TIME_SCHEMA

# Bounds the server's cost estimate of validation rules.
_MAX_CONTAINERS: Final = 256
# 292 years: Kubernetes counts the deadline of a Job in nanoseconds, and a longer one has passed.
MAX_DEADLINE_S: Final = (2**63 - 1) // 10**9
_FIELD_OF_V1: Final = "is a field of v1: write apiVersion kubeflow.org/v1"
# The message of training-operator's own rule.
_QUEUE_IMMUTABLE: Final[JSON] = {
    "rule": "self == oldSelf",
    "message": "spec.runPolicy.schedulingPolicy.queue is immutable",
}


def definition(
    resource: Resource, singular: str, versions: Sequence[JSON], categories: Sequence[str] = ()
) -> JSON:
    """Return a CustomResourceDefinition in wire form."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.group_resource, "labels": {MANAGED_BY_LABEL: MANAGED_BY}},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "plural": resource.plural,
                "singular": singular,
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                **({"categories": list(categories)} if categories else {}),
            },
            "versions": list(versions),
        },
    }


def int32(minimum: int) -> JSON:
    return {"type": "integer", "format": "int32", "minimum": minimum}


def ttl() -> JSON:
    return {
        **int32(0),
        "description": "Seconds from the end of the job to its deletion; never by default.",
    }


def suspend() -> JSON:
    description = "Whether the job is suspended: it has no pods."
    return {"type": "boolean", "description": description}


def replicas() -> JSON:
    return {**int32(0), "maximum": MAX_REPLICAS, "description": "The number."}


def deadline() -> JSON:
    """Return the schema of the seconds that a job may be active, an int64 as in a Job."""
    return {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "maximum": MAX_DEADLINE_S,
        "description": "Seconds from start to failure of the job.",
    }


def status_schema() -> JSON:
    """Return the schema of ``status``: typed like v1's Go types, preserving other fields."""
    replica = {
        "type": "object",
        **PRESERVE_UNKNOWN,
        "properties": {
            **{name: int32(0) for name in ("active", "succeeded", "failed")},
            "selector": {"type": "string"},
            "labelSelector": pod_schema.type_schema("LabelSelector"),
        },
    }
    by_type: JSON = {"type": "object", "nullable": True, "additionalProperties": replica}
    condition = {name: {"type": "string"} for name in ("type", "status", "reason", "message")}
    times = {name: _time() for name in ("lastUpdateTime", "lastTransitionTime")}
    conditions = {
        "type": "array",
        "nullable": True,
        "description": "The conditions of the job; the last one is the latest.",
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {**condition, **times},
        },
    }
    return {
        "type": "object",
        "description": "The last observed state, written by the controller only.",
        **PRESERVE_UNKNOWN,
        "properties": {
            "conditions": conditions,
            "replicaStatuses": {
                "description": "The number of replicas by type and state.",
                **by_type,
            },
            "startTime": _time(),
            "completionTime": _time(),
            "lastReconcileTime": _time(),
            OWN_STATE_FIELD: {
                "type": "object",
                "description": "dlctl's own state.",
                **PRESERVE_UNKNOWN,
            },
        },
    }


def _time() -> JSON:
    # The format alone accepts times without a zone, which make Go fail to decode the whole list.
    return {**TIME_SCHEMA, "nullable": True}


def required_pod_template(*, is_current: bool = True, with_required: bool = False) -> JSON:
    """Return the schema of a pod template with at least one container and its image.

    ``with_required``, most of what else core/v1 requires has to be there, too.
    """
    template = pod_schema.pod_template_schema(is_current=is_current, with_required=with_required)
    spec = template["properties"]["spec"]
    containers = spec["properties"]["containers"]
    container = containers["items"]
    required_strings = {name: {"type": "string", "minLength": 1} for name in ("name", "image")}
    container = _require(container, required_strings, required=list(required_strings))
    containers = {**containers, "minItems": 1, "maxItems": _MAX_CONTAINERS, "items": container}
    spec = _require(spec, {"containers": containers}, required=["containers"])
    return _require(template, {"spec": spec}, required=["spec"])


def _require(schema: JSON, properties: JSON, *, required: list[str]) -> JSON:
    return {
        **schema,
        "required": required,
        "properties": {**schema["properties"], **properties},
    }


def scheduling_policy(unknown_fields: JSON) -> JSON:
    return {
        "type": "object",
        "description": "Settings of gang scheduling.",
        **unknown_fields,
        "properties": {
            "minAvailable": int32(1),
            "queue": {
                "type": "string",
                "x-kubernetes-validations": [_QUEUE_IMMUTABLE],
            },
            "minResources": {
                "type": "object",
                "additionalProperties": {
                    "x-kubernetes-int-or-string": True,
                    "maxLength": quantities.MAX_CHARS,
                    "pattern": quantities.PATTERN,
                },
            },
            "priorityClass": {"type": "string"},
            "scheduleTimeoutSeconds": int32(0),
        },
    }


def keep_unchanged(schema: JSON, field: str, message: str = _FIELD_OF_V1) -> None:
    """Let a version keep what another one has stored in a field, but not write there."""
    schema["properties"][field] = {
        "type": "object",
        **PRESERVE_UNKNOWN,
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": message}],
    }
    rules = schema.setdefault("x-kubernetes-validations", [])
    rules.append(_not_added(field, message))


def _not_added(field: str, message: str) -> JSON:
    """Return the rule of a spec that a field is there only if it was there before.

    It has to look itself: to a server, objects that hold fields without a schema always change.
    """
    return {
        "rule": f"!has(self.{field}) || oldSelf.?{field}.hasValue()",
        "optionalOldSelf": True,
        "message": message,
        "fieldPath": f".{field}",
    }
