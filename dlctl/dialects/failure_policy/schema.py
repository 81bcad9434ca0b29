"""The field ``failurePolicy`` of run policies: its schema and limits.

The size of a CRD is limited: older versions of a form leave the checks to the reader.
"""

from collections.abc import Iterable
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.policies.failure_policy import FailureAction, RestartStrategy
from dlctl.api.status.verdict import Cause
from dlctl.dialects.field_reader import MAX_INT32
from dlctl.dialects.pods.pod_schema import PRESERVE_UNKNOWN

FIELD: Final = "failurePolicy"
# They bound the server's cost estimate of the rules.
MAX_RULES: Final = 20
MAX_CONDITIONS: Final = 20
MAX_TYPES: Final = 16
MAX_NAME_CHARS: Final = 36
# The limits of batch/v1: the longest names of a container and a condition, the highest exit code.
_MAX_CONTAINER_CHARS: Final = 63
_MAX_CONDITION_CHARS: Final = 316
MAX_EXIT_CODE: Final = 255
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("True", "False", "Unknown")
SECOND_LIMIT: Final = f"cannot be combined with {FIELD}: use its maxRestarts"
LIMIT_RULE: Final[JSON] = {
    "rule": f"!has(self.{FIELD}) || !has(self.backoffLimit)",
    "message": SECOND_LIMIT,
    "fieldPath": ".backoffLimit",
}
# The schema for versions that leave the checks to the reader.
UNCHECKED_SCHEMA: Final[JSON] = {"type": "object", **PRESERVE_UNKNOWN}


def schema(types: Iterable[str]) -> JSON:
    """Return the schema, given the names of the replica types in lower case."""
    names = "self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && a.name == b.name))"
    return {
        "type": "object",
        "description": "What follows from a failure, instead of restart policies.",
        "properties": {
            "maxRestarts": {"type": "integer", "minimum": 0, "maximum": MAX_INT32},
            "restartStrategy": _one_of(*RestartStrategy),
            "rules": {
                **_list(MAX_RULES, _rule_schema(types)),
                "description": "The first one that matches decides.",
                "x-kubernetes-validations": [
                    {"rule": names, "message": "names of rules must be unique"}
                ],
            },
        },
    }


def _rule_schema(types: Iterable[str]) -> JSON:
    condition = {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "maxLength": _MAX_CONDITION_CHARS},
            "status": _one_of(*STATUSES),
        },
    }
    type_ = {"type": "string", "pattern": f"^(?i:{'|'.join(types)})$"}
    return {
        "type": "object",
        "required": ["action"],
        "properties": {
            "name": {"type": "string", "maxLength": MAX_NAME_CHARS},
            "action": _one_of(*FailureAction),
            "onExitCodes": _exit_codes_schema(),
            "onPodConditions": _list(MAX_CONDITIONS, condition),
            "onCauses": _list(len(Cause), _one_of(*Cause)),
            "targetReplicas": _list(MAX_TYPES, type_),
        },
    }


def _exit_codes_schema() -> JSON:
    exit_code = {"type": "integer", "minimum": 0, "maximum": MAX_EXIT_CODE}
    return {
        "type": "object",
        "required": ["operator", "values"],
        "properties": {
            "containerName": {"type": "string", "maxLength": _MAX_CONTAINER_CHARS},
            "operator": _one_of(*OPERATORS),
            "values": {**_list(MAX_EXIT_CODE, exit_code), "minItems": 1},
        },
        "x-kubernetes-validations": [
            {
                "rule": "self.operator == 'NotIn' || !(0 in self.values)",
                "message": "0 is not a failure: remove it from values",
            }
        ],
    }


def _one_of(*values: str) -> JSON:
    return {"type": "string", "enum": list(map(str, values))}


def _list(max_items: int, items: JSON) -> JSON:
    return {"type": "array", "maxItems": max_items, "items": items}
