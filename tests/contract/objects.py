"""Objects of the built-in kinds: valid unless a test says otherwise."""

from typing import Any

from dlctl.api.json_types import JSON


def config_map(name: str = "a", *, data: JSON | None = None, **meta: Any) -> JSON:
    return {"metadata": {"name": name} | meta, "data": {"k": "v"} if data is None else data}


def pod(name: str = "a", *, node: str = "", meta: JSON | None = None, **spec: Any) -> JSON:
    """Return a pod that no scheduler binds."""
    shape: JSON = {
        "schedulerName": "nobody",
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "mxnet"}],
    }
    if node:
        shape["nodeName"] = node
    return {"metadata": {"name": name} | (meta or {}), "spec": shape | spec}


def service(name: str = "a", **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]} | spec}
