"""Paths of OpenAPI documents: operations and their parameters.

Only those that clients use: kinds, verbs and the parameters of writes.
"""

from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.resources import ServedResource

_WRITES: Final = {"post": "create", "put": "update", "patch": "patch"}


def paths(served: ServedResource, reference: str, *, v3: bool) -> JSON:
    """Return the paths of a resource's objects; ``reference`` points to its definition."""
    resource = served.resource
    namespace = "{namespace}" if resource.namespaced else ""
    operations = dict(_operations(served, reference, v3=v3))
    collection = {key: value for key, value in operations.items() if key in ("get", "post")}
    single = {key: value for key, value in operations.items() if key != "post"}
    return {
        resource.path(namespace): collection,
        f"{resource.path(namespace)}/{{name}}": single,
    }


def _operations(served: ServedResource, reference: str, *, v3: bool) -> Iterator[tuple[str, JSON]]:
    schema = {"$ref": reference}
    for method in ("get", "post", "put", "patch", "delete"):
        operation: JSON = {
            "x-kubernetes-group-version-kind": served.group_version_kind,
            "x-kubernetes-action": _WRITES.get(method, method),
            "responses": {"200": _response(schema, v3=v3)},
            "parameters": [_query(name, v3=v3) for name in _parameters(method)],
        }
        yield method, operation


def _parameters(method: str) -> tuple[str, ...]:
    if method in _WRITES:
        return "dryRun", "fieldManager", "fieldValidation"
    return ("dryRun",) if method == "delete" else ("resourceVersion",)


def _query(name: str, *, v3: bool) -> JSON:
    kind = {"schema": {"type": "string"}} if v3 else {"type": "string"}
    return {"name": name, "in": "query", "uniqueItems": True, **kind}


def _response(schema: JSON, *, v3: bool) -> JSON:
    if v3:
        return {"description": "OK", "content": {"application/json": {"schema": schema}}}
    return {"description": "OK", "schema": schema}
