"""Pods as a real cluster has them: about 6 KB of JSON each, of which managedFields are a third."""

from typing import Any, Final

import msgspec

LABEL: Final = "dlctl.dev/managed-by"


def _managed_fields(manager: str, fields: int) -> dict[str, Any]:
    field: dict[str, Any] = {".": {}, "f:name": {}, "f:value": {}}
    owned = {f'k:{{"name":"ENV_{n}"}}': field for n in range(fields)}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"mxnet"}': {"f:env": owned}}}},
    }


def make_pod(number: int, version: int = 1) -> dict[str, Any]:
    """Return a worker's pod, running."""
    job, index = divmod(number, 10)
    name = f"train-{job}-worker-abcd-{index}"
    times = {"startedAt": "2026-01-01T00:00:05Z"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": f"team-{job % 7}",
            "uid": f"0b3d7f6e-0000-4000-8000-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {LABEL: "dlctl", "job-name": f"train-{job}", "replica-index": str(index)},
            "annotations": {"scheduler.example/decision": "x" * 200},
            "ownerReferences": [
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": "MXJob",
                    "name": f"train-{job}",
                    "uid": f"1b3d7f6e-0000-4000-8000-{job:012d}",
                    "controller": True,
                }
            ],
            "managedFields": [_managed_fields("dlctl", 26), _managed_fields("kubelet", 18)],
        },
        "spec": {
            "nodeName": f"node-{number % 50}",
            "containers": [
                {
                    "name": "mxnet",
                    "image": "registry.example/train:1.9.1",
                    "command": ["python", "/app/train.py"],
                    "env": [{"name": f"ENV_{n}", "value": f"value of {n}"} for n in range(22)],
                    "resources": {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}},
                }
            ],
            "tolerations": [{"key": f"taint-{n}", "operator": "Exists"} for n in range(6)],
            "volumes": [{"name": f"v{n}", "emptyDir": {"sizeLimit": "1Gi"}} for n in range(6)],
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.1.{number // 250}.{number % 250}",
            "startTime": "2026-01-01T00:00:01Z",
            "conditions": [
                {"type": type_, "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
                for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": "mxnet", "ready": True, "restartCount": 0, "state": {"running": times}}
            ],
        },
    }


def make_list(numbers: range, continue_: str = "") -> bytes:
    """Return a list of these pods, or a page of one."""
    meta = {"resourceVersion": "100", "continue": continue_}
    items = [make_pod(number) for number in numbers]
    return msgspec.json.encode({"kind": "PodList", "metadata": meta, "items": items})
