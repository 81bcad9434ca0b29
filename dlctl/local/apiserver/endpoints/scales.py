"""The Scale of a custom object: its replicas as a small object, wherever its spec has them.

Pure functions between an object and its ``Scale``; the paths come from the resource.
"""

from collections.abc import Mapping
from typing import Any

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.status import FieldError


def scale_of(obj: JSON, paths: Mapping[str, str]) -> JSON:
    """Return the Scale of an object."""
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    state: JSON = {"replicas": _at(obj, paths["statusReplicasPath"]) or 0}
    selector = _at(obj, paths.get("labelSelectorPath", ""))
    if selector:
        state["selector"] = selector
    replicas = _at(obj, paths["specReplicasPath"])
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {} if replicas is None else {"replicas": replicas},
        "status": state,
    }


def check_scale(obj: JSON, paths: Mapping[str, str]) -> None:
    """Reject the Scale of an object without replicas."""
    field = paths["specReplicasPath"]
    if _at(obj, field) is None:
        raise status.internal_error(f'the spec replicas field "{field}" does not exist')


def apply_scale(obj: JSON, scale: JSON, resource: Resource, paths: Mapping[str, str]) -> JSON:
    """Return the object with the replicas of the Scale, at the resource version it names."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int):
        raise status.bad_request("no kind is registered for the type v1.Scale")
    if replicas < 0:
        detail = "should be a non-negative integer"
        error = FieldError.invalid(paths["specReplicasPath"], replicas, detail)
        raise status.invalid(resource, obj["metadata"]["name"], [error])
    names = paths["specReplicasPath"].strip(".").split(".")
    result: JSON = _replaced(obj, names, replicas)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        result["metadata"] = result["metadata"] | {"resourceVersion": version}
    return result


def _at(obj: JSON, path: str) -> Any:
    value: Any = obj
    for name in filter(None, path.split(".")):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if path else None


def _replaced(value: Any, names: list[str], leaf: int) -> Any:
    if not names:
        return leaf
    first, *rest = names
    inner = value if isinstance(value, Mapping) else {}
    return {**inner, first: _replaced(inner.get(first), rest, leaf)}
