"""OpenAPI of all served resources, for ``kubectl explain``, validation and diffs.

Built-in kinds come from the tables of ``builtin_types``, custom ones from their own schemas. Only
the paths that clients use are included.
"""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from dlctl.api.core_types.type_tables import Field, TypeDefinition
from dlctl.api.json_types import JSON
from dlctl.local.apiserver.discovery.openapi_paths import paths
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.serialization.builtin_types import ANY_JSON, descriptions, kinds

_INFO: Final = {"title": "Kubernetes", "version": "v1.36.0"}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: Final[dict[str, JSON]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "intstr": {"type": "string", "format": "int-or-string"},
    "quantity": {"type": "string", "x-kubernetes-quantity": True},
    **{name: {"type": "object"} for name in ANY_JSON},
}
_V3_SCALARS: Final[dict[str, JSON]] = _SCALARS | {
    "intstr": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    # Not empty: kubectl would treat it as missing.
    **{name: {"x-kubernetes-preserve-unknown-fields": True} for name in ANY_JSON},
}


def v2(registry: ResourceRegistry) -> JSON:
    definitions = dict(_builtin_definitions("#/definitions/"))
    found: JSON = {}
    for served in registry:
        if served.openapi is not None:
            definitions[_custom_name(served)] = _plain(_custom(served, "#/definitions/"))
        found |= paths(served, "#/definitions/" + definition_name(served), v3=False)
    definitions = _with_kinds(definitions, registry)
    return {"swagger": "2.0", "info": _INFO, "paths": found, "definitions": definitions}


def v3_index(registry: ResourceRegistry) -> JSON:
    """Return the URL of each group and version's document; it changes with the document."""
    groups = sorted({_group_path(served) for served in registry})
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(registry, path)}"}
            for path in groups
        }
    }


def v3(registry: ResourceRegistry, path: str) -> JSON | None:
    """Return the document of one group and version; None if it does not exist."""
    found = [served for served in registry if _group_path(served) == path]
    if not found:
        return None
    prefix = "#/components/schemas/"
    schemas: JSON = {}
    for served in found:
        if served.openapi is None:
            schemas |= _closure(served.resource.kind, prefix)
        else:
            schemas[_custom_name(served)] = _custom(served, prefix)
            schemas |= _closure("ObjectMeta", prefix)
    # Every write may return a Status, and every deletion accepts options.
    schemas |= _closure("Status", prefix) | _closure("DeleteOptions", prefix)
    operations: JSON = {}
    for served in found:
        operations |= paths(served, prefix + definition_name(served), v3=True)
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": operations,
        "components": {"schemas": _with_kinds(schemas, found)},
    }


def definition_name(served: ServedResource) -> str:
    if served.openapi is not None:
        return _custom_name(served)
    return kinds()[served.resource.kind].definition_name


def _custom_name(served: ServedResource) -> str:
    resource = served.resource
    reversed_ = ".".join(reversed(resource.group.split(".")))
    return f"{reversed_}.{resource.version}.{resource.kind}"


def _group_path(served: ServedResource) -> str:
    resource = served.resource
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _hash(registry: ResourceRegistry, path: str) -> str:
    content = msgspec.json.encode(v3(registry, path))
    return hashlib.sha256(content).hexdigest().upper()


@lru_cache(maxsize=4)
def _builtin_definitions(prefix: str) -> JSON:
    return {kind.definition_name: _definition(kind, prefix) for kind in kinds().values()}


def _closure(name: str, prefix: str) -> JSON:
    """Return the definitions of a type and of all types that it refers to."""
    found: JSON = {}
    pending = [name]
    while pending:
        kind = kinds()[pending.pop()]
        if kind.definition_name not in found:
            found[kind.definition_name] = _builtin_definitions(prefix)[kind.definition_name]
            pending += [field.type for field in kind.fields.values() if field.type in kinds()]
    return found


def _definition(kind: TypeDefinition, prefix: str) -> JSON:
    result: JSON = {"type": "object"}
    if description := descriptions().get(kind.name):
        result["description"] = description
    if required := [field.name for field in kind.fields.values() if field.required]:
        result["required"] = required
    result["properties"] = {
        name: _described(_property(field, field.shape, prefix), kind, field)
        for name, field in kind.fields.items()
    }
    return result


def _described(schema: JSON, kind: TypeDefinition, field: Field) -> JSON:
    found = descriptions()
    description = found.get(f"{kind.name}.{field.name}") or found.get(f"*.{field.name}")
    extra: JSON = {"description": description} if description else {}
    if field.merge_key is not None:
        extra["x-kubernetes-patch-strategy"] = "merge"
        if field.merge_key:
            extra["x-kubernetes-patch-merge-key"] = field.merge_key
    if "$ref" in schema and extra and "components" in schema["$ref"]:
        # In OpenAPI 3.0, nothing may stand beside a reference.
        return {**extra, "allOf": [schema], "default": {}}
    return {**schema, **extra}


def _property(field: Field, shape: tuple[str, ...], prefix: str) -> JSON:
    if shape:
        inner = _property(field, shape[1:], prefix)
        if shape[0] == "[]":
            return {"type": "array", "items": inner}
        return {"type": "object", "additionalProperties": inner}
    if field.type in kinds():
        return {"$ref": prefix + kinds()[field.type].definition_name}
    return (_V3_SCALARS if "components" in prefix else _SCALARS)[field.type]


def _custom(served: ServedResource, prefix: str) -> JSON:
    """Return the schema of a custom kind with the fields that every object has."""
    schema = served.openapi or {}
    builtin = _builtin_definitions(prefix)[kinds()["Pod"].definition_name]["properties"]
    reference: JSON = {"$ref": prefix + _META}
    if "components" in prefix:
        reference = {
            "allOf": [reference],
            "description": builtin["metadata"].get("description", ""),
        }
    properties = {
        **schema.get("properties", {}),
        "apiVersion": builtin["apiVersion"],
        "kind": builtin["kind"],
        "metadata": reference,
    }
    return {**schema, "properties": properties}


# Not expressible in OpenAPI v2, or not understood by its clients.
_V3_ONLY: Final = frozenset({"oneOf", "anyOf", "not", "nullable", "x-kubernetes-validations"})


def _plain(schema: Any) -> Any:
    """Return a schema in OpenAPI v2: where it cannot be exact, it is left open."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in _V3_ONLY}
    if schema.get("x-kubernetes-int-or-string") or schema.get("nullable"):
        result.pop("type", None)
        result.pop("properties", None)
        result.pop("items", None)
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = _plain(result[key])
    if "properties" in result:
        result["properties"] = {name: _plain(each) for name, each in result["properties"].items()}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        result.pop("properties", None)
    return result


def _with_kinds(definitions: JSON, registry: Iterable[ServedResource]) -> JSON:
    """Return the definitions, with those of served kinds marked as such."""
    marked = dict(definitions)
    for served in registry:
        name, kind = definition_name(served), served.group_version_kind
        if name in marked:
            marked[name] = {**marked[name], "x-kubernetes-group-version-kind": [kind]}
    return marked
