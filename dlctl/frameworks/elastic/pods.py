"""What the pods of an elastic job get beside what their templates say. Pure: pod specs in and out.

The names, the paths and the modes are et-operator's: scripts of users rely on them.
"""

from collections.abc import Mapping
from typing import Any, Final

from dlctl.frameworks import launchers
from dlctl.frameworks.elastic.files import (
    CONFIG_PATH,
    DEEPSPEED_HOSTFILE,
    DEEPSPEED_PATH,
    DISCOVER_HOSTS,
    HOSTFILE,
    HOSTS_PATH,
    KUBEXEC,
)
from dlctl.frameworks.launchers import INIT_SIZE, KUBECTL_PATH, extended, mounted

JSON = Mapping[str, Any]
_HOSTS: Final = "training-job-hostfile"
_DEEPSPEED: Final = "deepspeed-hostfile"
_KUBECTL: Final = "training-job-kubectl"
_CONFIG: Final = "training-job-config"
_READABLE: Final = 0o444
_EXECUTABLE: Final = 0o555
_MODES: Final = {
    HOSTFILE: _READABLE,
    DISCOVER_HOSTS: _READABLE,
    KUBEXEC: _EXECUTABLE,
    DEEPSPEED_HOSTFILE: _READABLE,
}
_PATHS: Final = {
    _HOSTS: HOSTS_PATH,
    _CONFIG: CONFIG_PATH,
    _KUBECTL: KUBECTL_PATH,
    _DEEPSPEED: DEEPSPEED_PATH,
}
# Not the user's to choose: what has ended is replaced by another pod, or not at all.
_NO_RESTART: Final = {"restartPolicy": "Never"}
# It has to heed SIGTERM by itself: the first process of a container is not ended by it, and who
# waits for a worker to be gone would wait for SIGKILL.
_SLEEP: Final = "sleep 365d & trap 'kill $!' TERM; wait $!"
_SSHD: Final = f"/usr/sbin/sshd  && {{ {_SLEEP}; }}"
# There is nothing to wait for.
_GRACE_S: Final = 1
_AGENT: Final = {"name": "OMPI_MCA_plm_rsh_agent", "value": f"{CONFIG_PATH}/{KUBEXEC}"}


def worker(pod_spec: JSON, *, by_ssh: bool) -> JSON:
    """Return the spec of a worker: without a command of its own, it waits to be entered."""
    container, *others = pod_spec["containers"]
    if container.get("command"):
        return {**pod_spec, **_NO_RESTART}
    container = {**container, "command": ["sh", "-c", _SSHD if by_ssh else _SLEEP]}
    grace = pod_spec.get("terminationGracePeriodSeconds")
    return {
        **pod_spec,
        **_NO_RESTART,
        "containers": [container, *others],
        "terminationGracePeriodSeconds": _GRACE_S if grace is None else grace,
    }


def launcher(pod_spec: JSON, *, account: str, config: str) -> JSON:
    """Return the spec of the launcher: its first container finds the files about its workers."""
    container, *others = pod_spec["containers"]
    empty: list[JSON] = [{"name": name, "emptyDir": {}} for name in (_HOSTS, _DEEPSPEED, _KUBECTL)]
    items = [{"key": name, "path": name, "mode": mode} for name, mode in _MODES.items()]
    files = {"name": _CONFIG, "configMap": {"name": config, "items": items}}
    spec = {
        **pod_spec,
        **_NO_RESTART,
        "serviceAccountName": account,
        "containers": [mounted(container, *_mounts(*_PATHS)), *others],
    }
    return extended(spec, volumes=[*empty, files])


def with_kubectl(pod_spec: JSON, *, image: str, namespace: str) -> JSON:
    """Return the spec of a launcher whose remote shell is kubectl."""
    container, *others = pod_spec["containers"]
    if all(variable.get("name") != _AGENT["name"] for variable in container.get("env") or ()):
        container = extended(container, env=[_AGENT])
    delivery = launchers.delivery(image, namespace, _mounts(_KUBECTL))
    return extended({**pod_spec, "containers": [container, *others]}, initContainers=[delivery])


def with_hostfile_step(pod_spec: JSON, *, image: str, script: str) -> JSON:
    """Return the spec of a launcher that begins by this script, after all its other steps."""
    step = {
        "name": "init-hostfile",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "resources": {"limits": dict(INIT_SIZE), "requests": dict(INIT_SIZE)},
        "volumeMounts": _mounts(_HOSTS, _DEEPSPEED, _CONFIG),
    }
    return extended(pod_spec, initContainers=[step])


def _mounts(*volumes: str) -> list[JSON]:
    return [{"name": volume, "mountPath": _PATHS[volume]} for volume in volumes]
