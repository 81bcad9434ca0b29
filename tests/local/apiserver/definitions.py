"""CRDs of a custom resource and objects of it, valid by default."""

from typing import Any

from dlctl.api.json_types import JSON


def version(name: str = "v1", *, storage: bool = True, maximum: int = 100) -> JSON:
    size = {"type": "integer", "minimum": 0, "maximum": maximum, "description": "How big."}
    color = {"type": "string", "enum": ["red", "blue"], "default": "red"}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    spec = {
        "type": "object",
        "description": "What is wanted.",
        "required": ["size"],
        "properties": {"size": size, "color": color},
        "x-kubernetes-validations": [{"rule": "self.size != 7", "message": "not seven"}],
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }


def definition(
    *,
    plural: str = "gadgets",
    versions: list[JSON] | None = None,
    shortNames: list[str] | None = None,  # noqa: N803 - as the API spells it.
) -> JSON:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.test.io"},
        "spec": {
            "group": "test.io",
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": plural.removesuffix("s"),
                "kind": "Gadget",
                "shortNames": ["gd"] if shortNames is None else shortNames,
            },
            "versions": [version()] if versions is None else versions,
        },
    }


def gadget(name: str = "a", *, api_version: str = "test.io/v1", **spec: Any) -> JSON:
    return {
        "apiVersion": api_version,
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": spec,
    }


def under_spec(**properties: JSON) -> JSON:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
