"""Pods and services for the tests of the node; valid by default."""

from typing import Any

import msgspec

from dlctl.local.node.api_types import NodePod, NodeService
from dlctl.local.node.scheduling_filters import SchedulableNode


def make_container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "any", "command": ["true"], **fields}


def pod_body(name: str = "pod", *, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    """Return the manifest of a pod; ``env`` is short for that of its one container."""
    env = spec.pop("env", None)
    command = spec.pop("command", ["true"])
    default = [make_container(command=command, **({"env": env} if env else {}))]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": default, "restartPolicy": "Never", **spec},
    }


def make_pod(name: str = "pod", **fields: Any) -> NodePod:
    body = pod_body(name, **fields)
    body["metadata"]["uid"] = f"uid-of-{name}"
    return msgspec.convert(body, NodePod)


def make_service(name: str = "svc", *, selector: dict[str, str], **spec: Any) -> NodeService:
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIP": "None", "selector": selector, **spec},
    }
    return msgspec.convert(body, NodeService)


GPU = "nvidia.com/gpu"


def make_node(
    *, gpus: int = 0, labels: dict[str, str] | None = None, **spec: Any
) -> SchedulableNode:
    body = {
        "metadata": {"name": "localhost", "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "2", **({GPU: str(gpus)} if gpus else {})}},
    }
    return msgspec.convert(body, SchedulableNode)


def scheduled(status: dict[str, Any]) -> dict[str, Any]:
    conditions = status.get("conditions") or []
    return next((dict(c) for c in conditions if c["type"] == "PodScheduled"), {})
