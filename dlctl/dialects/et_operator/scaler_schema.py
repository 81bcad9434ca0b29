"""The CRDs of ScaleIn and ScaleOut, with validation at admission.

Objects stored under et-operator's CRDs, which validated nothing, can still have their status
written: otherwise their errors could not be reported.
"""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.dialects import schema_parts
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_OUTS
from dlctl.dialects.field_reader import MAX_REPLICAS

_MAX_NAME_LENGTH: Final = 253
_PRINTER_COLUMNS: Final = (
    {"name": "Phase", "jsonPath": ".status.conditions[-1:].type", "type": "string"},
    {"name": "Age", "jsonPath": ".metadata.creationTimestamp", "type": "date"},
)
_SPEC_REQUIRED_RULE: Final = {
    "rule": "oldSelf.hasValue() || has(self.spec)",
    "optionalOldSelf": True,
    "message": "spec is missing: say which TrainingJob to scale, and how",
}
_FORBIDDEN_SCRIPT_RE2: Final = scalers.FORBIDDEN_SCRIPT.replace("\\", "\\\\")
_SCRIPT_RULE: Final = {
    "rule": f"!self.matches('{_FORBIDDEN_SCRIPT_RE2}')",
    "message": scalers.FORBIDDEN_SCRIPT_MESSAGE,
}


def scaler_crd(resource: Resource) -> JSON:
    """Return the CustomResourceDefinition of ScaleIn or of ScaleOut."""
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(resource)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [dict(column) for column in _PRINTER_COLUMNS],
    }
    return schema_parts.definition(resource, resource.kind.lower(), [version])


def _schema(resource: Resource) -> JSON:
    adds = resource.kind == SCALE_OUTS.kind
    what = "more workers" if adds else "fewer workers"
    return {
        "type": "object",
        "description": f"A request to continue a TrainingJob with {what}.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _spec(adds),
            "status": _status(adds),
        },
        "x-kubernetes-validations": [dict(_SPEC_REQUIRED_RULE)],
    }


def _spec(adds: bool) -> JSON:
    change = {"toAdd": _to_add()} if adds else {"toDelete": _to_delete()}
    return {
        "type": "object",
        "description": "The job to scale, and how.",
        "required": ["selector", *change],
        "properties": {
            "selector": {
                "type": "object",
                "description": "The job.",
                "required": ["name"],
                "properties": {
                    "name": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": _MAX_NAME_LENGTH,
                        "description": "Name of a TrainingJob in the same namespace.",
                    }
                },
            },
            **change,
            "script": {
                "type": "string",
                "maxLength": scalers.MAX_SCRIPT_PATH,
                "x-kubernetes-validations": [dict(_SCRIPT_RULE)],
                "description": "Path of a script in the launcher; its argument is <pod>:<slots> of "
                "the added or removed workers, separated by commas.",
            },
            "timeout": {
                **schema_parts.int32(1),
                "maximum": scalers.MAX_TIMEOUT_S,
                "description": "Timeout of the script"
                + (", and of new workers to become reachable," if adds else "")
                + " in seconds.",
            },
            "env": _env(),
            "backoffLimit": {
                **schema_parts.int32(0),
                "description": "Number of retries after a failure; 0 by default.",
            },
        },
    }


def _env() -> JSON:
    return {
        "type": "array",
        "description": "Variables for the script.",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "pattern": f"^{scalers.ENV_NAME}$"},
                "value": {"type": "string"},
            },
        },
    }


def _to_add() -> JSON:
    return {
        "type": "object",
        "description": "The workers to add.",
        "required": ["count"],
        "properties": {
            "count": {
                **schema_parts.int32(1),
                "maximum": MAX_REPLICAS,
                "description": "The number.",
            },
            "minCount": {
                **schema_parts.int32(1),
                "description": "Sufficient number when the timeout expires; all by default.",
            },
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.minCount) || !has(self.count) || self.minCount <= self.count",
                "message": "must not be more than count",
                "fieldPath": ".minCount",
            }
        ],
    }


def _to_delete() -> JSON:
    by_count = "(has(self.count) && self.count > 0)"
    by_names = "(has(self.podNames) && size(self.podNames) > 0)"
    names = {"type": "array", "items": {"type": "string", "minLength": 1}}
    return {
        "type": "object",
        "description": "The workers to remove: a number of them, or those named.",
        "properties": {
            "count": {**schema_parts.int32(0), "description": "The number; the newest go."},
            "podNames": {**names, "description": "The names of their pods."},
        },
        "x-kubernetes-validations": [
            {"rule": f"{by_count} != {by_names}", "message": scalers.COUNT_OR_POD_NAMES}
        ],
    }


def _status(adds: bool) -> JSON:
    schema = schema_parts.status_schema()
    kept = ("conditions", "replicaStatuses", "startTime", "completionTime", "lastReconcileTime")
    pods = "addPods" if adds else "toDeletePods"
    names = {"type": "array", "nullable": True, "items": {"type": "string"}}
    return {
        **schema,
        "properties": {
            "phase": {"type": "string", "description": "Scaling, ScaleSucceeded or ScaleFailed."},
            pods: {**names, "description": "The pods of the selected workers."},
            "restartCount": {"type": "integer", "format": "int32"},
            **{name: schema["properties"][name] for name in kept},
        },
    }
