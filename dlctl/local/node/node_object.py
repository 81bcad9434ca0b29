"""The Node object that represents this machine."""

import datetime
import os
import platform
from typing import Any

from dlctl.clock import timestamp

_POD_LIMIT = "1000"


def node_object(name: str, address: str, now: datetime.datetime) -> dict[str, Any]:
    """Return a ready node; in a cluster of one process, heartbeats are not needed."""
    capacity = {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 1024}Ki",
        "pods": _POD_LIMIT,
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "dlctl runs pods as processes of this machine",
        "lastHeartbeatTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(
                    platform.machine(), platform.machine()
                ),
            },
        },
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [ready],
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": platform.machine(),
                "containerRuntimeVersion": "dlctl://processes",
                "kernelVersion": platform.release(),
                "kubeletVersion": "v1.33.0",
                "operatingSystem": "linux",
                "osImage": platform.platform(),
            },
        },
    }
