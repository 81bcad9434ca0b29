"""The Node object that represents this machine."""

import datetime
import os
import platform
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any, Final

from dlctl.clock import timestamp

NODE_NAME: Final = "localhost"
_POD_LIMIT: Final = "1000"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_VERSION: Final = "v1.36.0"


def node_object(
    name: str,
    address: str,
    now: datetime.datetime,
    labels: Mapping[str, str],
    devices: Mapping[str, Sized],
) -> dict[str, Any]:
    """Return a ready node; in a cluster of one process, heartbeats are not needed."""
    capacity = {
        **machine_capacity(),
        "pods": _POD_LIMIT,
        **{resource: str(len(found)) for resource, found in devices.items()},
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "dlctl runs pods as processes of this machine",
        "lastHeartbeatTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                **labels,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
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
            "nodeInfo": _node_info(architecture),
        },
    }


def machine_capacity() -> dict[str, str]:
    """Return this machine's processors and memory."""
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 1024}Ki",
    }


def _node_info(architecture: str) -> dict[str, str]:
    """Return all fields: typed clients reject a node that lacks one."""
    return {
        "architecture": architecture,
        "bootID": _first_line("/proc/sys/kernel/random/boot_id"),
        "containerRuntimeVersion": "dlctl://processes",
        "kernelVersion": platform.release(),
        # There is no kube-proxy.
        "kubeProxyVersion": "",
        "kubeletVersion": _VERSION,
        "machineID": _first_line("/etc/machine-id"),
        "operatingSystem": "linux",
        "osImage": platform.platform(),
        # Only root may read it.
        "systemUUID": _first_line("/sys/class/dmi/id/product_uuid"),
    }


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        return ""
