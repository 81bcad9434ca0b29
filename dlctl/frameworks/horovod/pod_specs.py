"""Pod specs of elastic jobs: changes to the user's templates. Pure: pod specs in and out.

The names, paths and modes are et-operator's: users' scripts rely on them.
"""

from typing import Final

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.frameworks import launcher_access
from dlctl.frameworks.horovod.config_files import (
    CONFIG_PATH,
    DEEPSPEED_HOSTFILE,
    DEEPSPEED_PATH,
    DISCOVER_HOSTS,
    HOSTFILE,
    HOSTS_PATH,
    KUBEXEC,
)
from dlctl.frameworks.launcher_access import KUBECTL_PATH, init_resources
from dlctl.frameworks.pod_changes import add_mounts, append_items, append_to_first

_HOSTFILE_VOLUME: Final = "training-job-hostfile"
_DEEPSPEED_VOLUME: Final = "deepspeed-hostfile"
_KUBECTL_VOLUME: Final = "training-job-kubectl"
_CONFIG_VOLUME: Final = "training-job-config"
_READABLE: Final = 0o444
_EXECUTABLE: Final = 0o555
_MODE_BY_FILE: Final = {
    HOSTFILE: _READABLE,
    DISCOVER_HOSTS: _READABLE,
    KUBEXEC: _EXECUTABLE,
    DEEPSPEED_HOSTFILE: _READABLE,
}
_MOUNT_PATH_BY_VOLUME: Final = {
    _HOSTFILE_VOLUME: HOSTS_PATH,
    _CONFIG_VOLUME: CONFIG_PATH,
    _KUBECTL_VOLUME: KUBECTL_PATH,
    _DEEPSPEED_VOLUME: DEEPSPEED_PATH,
}
# Not configurable: an ended pod is replaced by another one, or not at all.
_NO_RESTART: Final = {"restartPolicy": "Never"}
# Traps SIGTERM: the first process of a container ignores it by default, and deleting a worker would
# wait for SIGKILL.
_SLEEP_COMMAND: Final = "sleep 365d & trap 'kill $!' TERM; wait $!"
_SSHD_COMMAND: Final = f"/usr/sbin/sshd  && {{ {_SLEEP_COMMAND}; }}"
# Short: an idle worker has nothing to finish.
_GRACE_PERIOD_S: Final = 1
_RSH_AGENT: Final = {"name": "OMPI_MCA_plm_rsh_agent", "value": f"{CONFIG_PATH}/{KUBEXEC}"}


def worker(pod_spec: ReadOnlyJSON, *, uses_ssh: bool) -> ReadOnlyJSON:
    """Return the spec of a worker: without its own command, it waits for programs to be started."""
    container, *others = pod_spec["containers"]
    if container.get("command"):
        return {**pod_spec, **_NO_RESTART}
    container = {
        **container,
        "command": ["sh", "-c", _SSHD_COMMAND if uses_ssh else _SLEEP_COMMAND],
    }
    grace = pod_spec.get("terminationGracePeriodSeconds")
    return {
        **pod_spec,
        **_NO_RESTART,
        "containers": [container, *others],
        "terminationGracePeriodSeconds": _GRACE_PERIOD_S if grace is None else grace,
    }


def launcher(pod_spec: ReadOnlyJSON, *, account: str, config: str) -> ReadOnlyJSON:
    """Return the spec of a launcher, with the host files mounted in its first container."""
    container, *others = pod_spec["containers"]
    empty: list[ReadOnlyJSON] = [
        {"name": name, "emptyDir": {}}
        for name in (_HOSTFILE_VOLUME, _DEEPSPEED_VOLUME, _KUBECTL_VOLUME)
    ]
    items = [{"key": name, "path": name, "mode": mode} for name, mode in _MODE_BY_FILE.items()]
    files = {"name": _CONFIG_VOLUME, "configMap": {"name": config, "items": items}}
    spec = {
        **pod_spec,
        **_NO_RESTART,
        "serviceAccountName": account,
        "containers": [add_mounts(container, *_mounts(*_MOUNT_PATH_BY_VOLUME)), *others],
    }
    return append_items(spec, volumes=[*empty, files])


def with_kubectl(pod_spec: ReadOnlyJSON, *, image: str, namespace: str) -> ReadOnlyJSON:
    """Return the spec of a launcher that uses kubectl as its remote shell."""
    given = pod_spec["containers"][0].get("env") or ()
    if all(variable.get("name") != _RSH_AGENT["name"] for variable in given):
        pod_spec = append_to_first(pod_spec, env=[_RSH_AGENT])
    init_container = launcher_access.kubectl_init_container(
        image, namespace, _mounts(_KUBECTL_VOLUME)
    )
    return append_items(pod_spec, initContainers=[init_container])


def with_hostfile_init(pod_spec: ReadOnlyJSON, *, image: str, script: str) -> ReadOnlyJSON:
    """Return the spec of a launcher that runs this script as its last init container."""
    init_container = {
        "name": "init-hostfile",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "resources": init_resources(),
        "volumeMounts": _mounts(_HOSTFILE_VOLUME, _DEEPSPEED_VOLUME, _CONFIG_VOLUME),
    }
    return append_items(pod_spec, initContainers=[init_container])


def _mounts(*volumes: str) -> list[ReadOnlyJSON]:
    return [{"name": volume, "mountPath": _MOUNT_PATH_BY_VOLUME[volume]} for volume in volumes]
