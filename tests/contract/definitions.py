"""The custom resource of the contract tests, and objects of it."""

from typing import Any

from dlctl.api.json_types import JSON

GROUP = "contract.dlctl.dev"
V1 = f"{GROUP}/v1"

_RULES = [
    {"rule": "self.size != 7", "message": "not seven"},
    {"rule": "self.size != 8"},
    {
        "rule": "self.size != 9",
        "messageExpression": "'not ' + (self.size == 9 ? 'nine' : 'more')",
        "fieldPath": ".size",
        "reason": "FieldValueForbidden",
    },
    {
        "rule": "self.size >= oldSelf.size",
        "message": "may not shrink",
    },
]


def _spec() -> JSON:
    port = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "port": {"type": "integer", "default": 80},
        },
    }
    return {
        "type": "object",
        "required": ["size"],
        "x-kubernetes-validations": _RULES,
        "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 100},
            "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
            "when": {"type": "string", "format": "date-time"},
            "fixed": {
                "type": "string",
                "maxLength": 10,
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "field is immutable"}
                ],
            },
            "maybe": {"type": "string", "nullable": True},
            "amount": {"x-kubernetes-int-or-string": True},
            "replicas": {"type": "integer"},
            "tags": {
                "type": "array",
                "maxItems": 3,
                "items": {"type": "string", "maxLength": 5},
                "x-kubernetes-list-type": "set",
            },
            "ports": {
                "type": "array",
                "maxItems": 3,
                "items": port,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
            "nested": {
                "type": "object",
                "default": {},
                "properties": {"depth": {"type": "integer", "default": 3}},
            },
        },
    }


def _status() -> JSON:
    return {
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["Ready", "Failed"]},
            "replicas": {"type": "integer"},
            "selector": {"type": "string"},
        },
    }


def _version() -> JSON:
    schema = {"type": "object", "properties": {"spec": _spec(), "status": _status()}}
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }


def gadgets() -> JSON:
    return definition("gadgets", versions=[_version()], short_names=["gd"])


def definition(
    plural: str,
    *,
    group: str = GROUP,
    versions: list[JSON] | None = None,
    short_names: list[str] | None = None,
) -> JSON:
    singular = plural.removesuffix("s")
    names: JSON = {"plural": plural, "singular": singular, "kind": singular.capitalize()}
    if short_names:
        names |= {"shortNames": short_names, "categories": ["all"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [open_version()] if versions is None else versions,
        },
    }


def open_version(name: str = "v1", *, served: bool = True, storage: bool = True) -> JSON:
    """Return a version that preserves every field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
    }


def gadget(
    name: str = "a", *, status: JSON | None = None, meta: JSON | None = None, **spec: Any
) -> JSON:
    obj: JSON = {
        "apiVersion": V1,
        "kind": "Gadget",
        "metadata": {"name": name} | (meta or {}),
        "spec": {"size": 1} | spec,
    }
    return obj if status is None else obj | {"status": status}


def version_of(schema: JSON) -> JSON:
    """Return a version with a schema."""
    return open_version() | {"schema": {"openAPIV3Schema": schema}}
