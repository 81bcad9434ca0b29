"""The schema of Kubeflow's kinds: as much as possible is validated at admission, without webhooks.

Kinds that are also served in other forms are stored under this schema, so it preserves the fields
of those.
"""

from typing import Any, Final

from dlctl.api import quantities
from dlctl.dialects import pod_schema
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.kubeflow import cel_rules
from dlctl.dialects.kubeflow.kind import KubeflowKind
from dlctl.dialects.pod_values import TIME_PATTERN
from dlctl.dialects.restart_policy import RestartPolicy

JSON = dict[str, Any]

# Bounds keep the server's cost estimate of validation rules within its budget.
MAX_REPLICA_TYPES: Final = 16
MAX_CONTAINERS: Final = 256
# v1's operator, which dlctl replaces, or MultiKueue with a controller in another cluster.
MANAGED_BY_VALUES: Final = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
_PRESERVE_UNKNOWN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_FIELD_OF_V1: Final = "is a field of v1: write apiVersion kubeflow.org/v1"
_RESTART_POLICIES: Final = ["", *(policy.value for policy in RestartPolicy)]


def replica_map_schema(kind: KubeflowKind, *, is_v1: bool = True) -> JSON:
    unknown_fields = _PRESERVE_UNKNOWN if kind.keeps_unknown_fields else {}
    field = kind.replica_specs_field
    schema: JSON = {
        "type": "object",
        "description": "The desired replicas and policies of the job.",
        **unknown_fields,
        "properties": {
            field: _replica_specs(kind, unknown_fields),
            "runPolicy": _run_policy(unknown_fields),
            # Where the predecessors of training-operator had them.
            **_policies(),
            **kind.spec_properties,
        },
        "x-kubernetes-validations": [cel_rules.MANAGED_BY_IMMUTABLE, *kind.spec_rules],
    }
    if is_v1:
        schema["properties"].update(kind.v1_properties)
        schema["x-kubernetes-validations"] += kind.v1_rules
    else:
        for name in kind.v1_properties:
            keep_unchanged(schema, name)
    if kind.list_form:
        listed = {
            "type": "array",
            "maxItems": MAX_REPLICA_TYPES * 2,
            "items": {"type": "object", **_PRESERVE_UNKNOWN},
        }
        schema["properties"].update(replicaSpecs=listed, **(kind.list_properties or {}))
        schema["x-kubernetes-validations"].append(cel_rules.replica_specs_required(field))
    else:
        schema["required"] = [field]
    return schema


def keep_unchanged(schema: JSON, field: str, message: str = _FIELD_OF_V1) -> None:
    """Let a version keep what another one has stored in a field, but not write there."""
    schema["properties"][field] = {
        "type": "object",
        **_PRESERVE_UNKNOWN,
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": message}],
    }
    rules = schema.setdefault("x-kubernetes-validations", [])
    rules.append(cel_rules.not_added(field, message))


def status_schema() -> JSON:
    """Return the schema of ``status``: typed like v1's Go types, preserving other fields."""
    replica = {
        "type": "object",
        **_PRESERVE_UNKNOWN,
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
        **_PRESERVE_UNKNOWN,
        "properties": {
            "conditions": conditions,
            "replicaStatuses": {
                "description": "The number of replicas by type and state.",
                **by_type,
            },
            "startTime": _time(),
            "completionTime": _time(),
            "lastReconcileTime": _time(),
            "dlctl": {
                "type": "object",
                "description": "dlctl's own state.",
                **_PRESERVE_UNKNOWN,
            },
        },
    }


def _time() -> JSON:
    # The format alone accepts times without a zone, which make Go fail to decode the whole list.
    return {"type": "string", "format": "date-time", "nullable": True, "pattern": TIME_PATTERN}


def _replica_specs(kind: KubeflowKind, unknown_fields: JSON) -> JSON:
    entry: JSON = {
        "type": "object",
        "required": ["template"],
        **unknown_fields,
        "properties": {
            "replicas": {
                **int32(0),
                "maximum": MAX_REPLICAS,
                "description": "The number.",
            },
            "restartPolicy": {
                "type": "string",
                "enum": _RESTART_POLICIES,
                "description": f"Restart policy; {kind.default_restart_policy} by default. "
                "ExitCode restarts them after a retryable exit code.",
            },
            "template": required_pod_template(),
        },
    }
    if kind.requires_container_name:
        entry["x-kubernetes-validations"] = [cel_rules.container_required(kind)]
    types = ", ".join(map(kind.type_name, kind.replica_types))
    return {
        "type": "object",
        "description": f"The job's replicas by type: {types}.",
        "minProperties": 1,
        "maxProperties": MAX_REPLICA_TYPES,
        "additionalProperties": entry,
        "x-kubernetes-validations": [
            *cel_rules.replica_specs_rules(kind, case_insensitive=kind.keeps_unknown_fields),
            *kind.replica_rules,
        ],
    }


def required_pod_template() -> JSON:
    """Return the schema of a pod template with at least one container and its image."""
    template = pod_schema.pod_template_schema()
    spec = template["properties"]["spec"]
    containers = spec["properties"]["containers"]
    container = containers["items"]
    required_strings = {name: {"type": "string", "minLength": 1} for name in ("name", "image")}
    container = _require(container, required_strings, required=list(required_strings))
    containers = {**containers, "minItems": 1, "maxItems": MAX_CONTAINERS, "items": container}
    spec = _require(spec, {"containers": containers}, required=["containers"])
    return _require(template, {"spec": spec}, required=["spec"])


def _require(schema: JSON, properties: JSON, *, required: list[str]) -> JSON:
    return {
        **schema,
        "required": required,
        "properties": {**schema["properties"], **properties},
    }


def _run_policy(unknown_fields: JSON) -> JSON:
    return {
        "type": "object",
        "description": "When the job runs, and its clean-up.",
        **unknown_fields,
        "properties": {
            **_policies(),
            "suspend": {
                "type": "boolean",
                "default": False,
                "description": "Whether the job is suspended: it has no pods.",
            },
            "managedBy": {
                "type": "string",
                "maxLength": 63,
                "enum": list(MANAGED_BY_VALUES),
                "description": "The controller of the job: this one, or MultiKueue's.",
            },
            "schedulingPolicy": scheduling_policy(unknown_fields),
        },
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
                "x-kubernetes-validations": [cel_rules.QUEUE_IMMUTABLE],
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


def _policies() -> JSON:
    return {
        "cleanPodPolicy": {
            "type": "string",
            "enum": ["", "All", "Running", "None"],
            "description": "Which pods are deleted when the job has ended; None by default.",
        },
        "ttlSecondsAfterFinished": {
            **int32(0),
            "description": "Seconds from the end of the job to its deletion; never by default.",
        },
        "activeDeadlineSeconds": {
            **int32(1),
            "description": "Seconds from start to failure of the job.",
        },
        "backoffLimit": {
            **int32(0),
            "description": "Number of failures that fails the job; unlimited by default.",
        },
    }


def int32(minimum: int) -> JSON:
    return {"type": "integer", "format": "int32", "minimum": minimum}
