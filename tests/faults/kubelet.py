"""Plays scheduler and kubelet of another node for pods that no scheduler of the cluster takes."""

import asyncio
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey, Resource
from dlctl.api.objects.nodes import NODES
from dlctl.clock import SystemClock, timestamp
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, NotFoundError
from tests.faults.fault import Scene

NODE: Final = "far-node"
# No other fields are needed in the pods of a job whose lives are played.
BY_HAND: Final = {"schedulerName": "by-hand"}
_PATIENCE_S: Final = 0.05


async def register(client: Client) -> None:
    """Create the node."""
    await client.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **_now("heartbeat")}
    body = {"status": {"conditions": [ready]}}
    await client.patch(NODES, ObjectKey("", NODE), body, subresource="status")


async def run(scene: Scene, *names: str) -> None:
    """Bind pods to the node, and report that they run."""
    for name in names:
        await bind(scene, name)
        pod = await scene.client.get(PODS, scene.pod(name), dict[str, Any])
        running = {"running": {"startedAt": timestamp(SystemClock().now())}}
        await report(scene, name, "Running", [_container(pod, running)])


async def bind(scene: Scene, name: str) -> None:
    """Bind a pod to the node as soon as it exists."""
    key, client = scene.pod(name), scene.client
    await _until_exists(client, key)
    binding = Resource("", "v1", f"pods/{key.name}/binding", "Binding")
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": key.name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    }
    await client.create(binding, key.namespace, body)


async def report(
    scene: Scene, name: str, phase: str, containers: list[JSON] | None = None, **fields: Any
) -> None:
    """Write a pod's status; ``disruption`` is the reason of a condition DisruptionTarget."""
    disruption, message = fields.pop("disruption", ""), fields.get("message", "")
    status: JSON = {"phase": phase, **fields}
    if containers is not None:
        status["containerStatuses"] = containers
    if disruption:
        status["conditions"] = [_disruption(disruption, message)]
    await scene.client.patch(PODS, scene.pod(name), {"status": status}, subresource="status")


async def fail(
    scene: Scene, name: str, *, code: int = 137, why: str = "Error", **fields: Any
) -> None:
    """Report that a pod has failed; ``why`` is the reason of its container."""
    pod = await scene.client.get(PODS, scene.pod(name), dict[str, Any])
    ended = {"exitCode": code, "reason": why, **_now("startedAt"), **_now("finishedAt")}
    if said := fields.pop("said", ""):
        ended["message"] = said
    await report(scene, name, "Failed", [_container(pod, {"terminated": ended})], **fields)


async def wait(scene: Scene, name: str, reason: str, message: str) -> None:
    """Report that the container of a pod waits."""
    pod = await scene.client.get(PODS, scene.pod(name), dict[str, Any])
    waiting = {"waiting": {"reason": reason, "message": message}}
    await report(scene, name, "Pending", [_container(pod, waiting)])


async def disrupt(scene: Scene, name: str, reason: str, message: str) -> None:
    """Mark a pod and delete it, as schedulers and controllers do."""
    body = {"status": {"conditions": [_disruption(reason, message)]}}
    await scene.client.patch(PODS, scene.pod(name), body, subresource="status")
    await scene.client.delete(PODS, scene.pod(name))


async def evict(scene: Scene, name: str) -> None:
    """Evict a pod, as by kubectl drain."""
    key = scene.pod(name)
    eviction = Resource("", "v1", f"pods/{key.name}/eviction", "Eviction")
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": key.name, "namespace": key.namespace},
    }
    await scene.client.create(eviction, key.namespace, body)


async def until_runs(scene: Scene, *names: str) -> None:
    """Wait until the cluster's own node runs pods."""
    for name in names:
        while True:
            try:
                pod = await scene.client.get(PODS, scene.pod(name), dict[str, Any])
                if pod.get("status", {}).get("phase") == "Running":
                    break
            except NotFoundError:
                pass
            await asyncio.sleep(_PATIENCE_S)


async def _until_exists(client: Client, key: ObjectKey) -> None:
    while True:
        try:
            await client.get(PODS, key, dict[str, Any])
        except (NotFoundError, ConflictError):
            await asyncio.sleep(_PATIENCE_S)
        else:
            return


def _container(pod: JSON, state: JSON) -> JSON:
    container = pod["spec"]["containers"][0]
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _disruption(reason: str, message: str) -> JSON:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        **_now("lastTransitionTime"),
    }


def _now(field: str) -> JSON:
    name = "lastHeartbeatTime" if field == "heartbeat" else field
    return {name: timestamp(SystemClock().now())}
