"""Jobs for the tests, and kubectl queries about them.

Replicas run the image of the controller, which has a shell and Python; nothing else is assumed.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl

IMAGE: Final = os.environ.get("E2E_IMAGE", "localhost/dlctl:e2e")
# No other image is certain to be available.
SETTINGS: Final = {"DLCTL_ELASTIC_INIT_CONTAINER_IMAGE": IMAGE}
ENDED: Final = ("Done", "Failed")
# The ConfigMap whose creation ends a waiting job, and the command that waits for it.
WAITING: Final = "waiting"
_WAIT: Final = ("sh", "-c", "until [ -e /tmp/go ]; do sleep 0.2; done")


def replicas(type_: str, count: int, command: Sequence[str], **pod: Any) -> JSON:
    """Return an entry of ``replicaSpecs``; ``pod`` are fields of the pod's spec."""
    container = {
        "name": "mxnet",
        "image": IMAGE,
        "command": list(command),
        **pod.pop("container", {}),
    }
    spec = {"restartPolicy": "Never", "containers": [container], **pod}
    return {"mxReplicaType": type_, "replicas": count, "template": {"spec": spec}}


def mxjob(name: str, *entries: JSON, **spec: Any) -> JSON:
    """Return a job of mx-operator's later form whose chief is the first worker."""
    chief = {"chief": {"replicaName": "WORKER", "replicaIndex": 0}}
    fields = {"jobMode": "local", "terminationPolicy": chief, "replicaSpecs": list(entries)}
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MXJob",
        "metadata": {"name": name},
        "spec": {**fields, **spec},
    }


def status(kubectl: Kubectl, name: str, resource: str = "mxjobs.kubeflow.org") -> JSON:
    job = kubectl.get(resource, name)
    return (job or {}).get("status") or {}


def ended(
    kubectl: Kubectl, name: str, resource: str = "mxjobs.kubeflow.org", *, within_s: float = 90
) -> JSON:
    """Wait for the end of a job, and return its status."""

    def probe() -> JSON | None:
        found = status(kubectl, name, resource)
        return found if found.get("phase") in ENDED else None

    return kubectl.until(probe, within_s=within_s, what=f"the end of {name}")


def running(
    kubectl: Kubectl, name: str, resource: str = "mxjobs.kubeflow.org", *, within_s: float = 60
) -> JSON:
    """Wait until all replicas of a job run; return its status."""

    def probe() -> JSON | None:
        found = status(kubectl, name, resource)
        return found if found.get("phase") == "Running" else None

    return kubectl.until(probe, within_s=within_s, what=f"{name} to run")


def start_until_released(
    kubectl: Kubectl, name: str = WAITING, /, pod: JSON | None = None, **counts: int
) -> JSON:
    """Create a waiting job, wait until it runs, and return its status."""
    fields = {"terminationGracePeriodSeconds": 1, **(pod or {})}
    entries = [
        replicas(type_, count, _WAIT, **fields)
        for type_, count in (counts or {"WORKER": 1}).items()
    ]
    mode = "dist" if "SCHEDULER" in counts else "local"
    kubectl.apply(mxjob(name, *entries, jobMode=mode))
    return running(kubectl, name)


def release(kubectl: Kubectl, name: str = WAITING) -> JSON:
    """Let a waiting job end, check that it succeeds, and return its status."""
    names: list[str] = [pod["metadata"]["name"] for pod in kubectl.items("pods")]
    chiefs = (n for n in names if n.startswith(f"{name}-worker-") and n.endswith("-0"))
    kubectl("exec", next(chiefs), "--", "touch", "/tmp/go")
    found = ended(kubectl, name)
    assert found["state"] == "Succeeded"
    return found


def events(kubectl: Kubectl, name: str, reason: str = "") -> list[str]:
    """Return the messages of a job's events, for one reason or for all."""
    return [e["message"] for e in kubectl.items("events") if _is_about(e, name, reason)]


def _is_about(event: JSON, name: str, reason: str) -> bool:
    return event["involvedObject"]["name"] == name and reason in ("", event["reason"])
