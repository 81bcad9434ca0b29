"""Pod specs of MPI jobs over SSH: changes to the user's templates. Pure: pod specs in and out.

The names, order and modes are mpi-operator's: users' scripts rely on them. Only the first container
of a pod takes part in the job.
"""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.frameworks import ssh_keys
from dlctl.frameworks.kubeflow.mpi_config import (
    CONFIG_PATH,
    DISCOVER_HOSTS,
    EXECUTABLE,
    HOSTFILE,
    READABLE,
    config_volume,
)
from dlctl.frameworks.pod_changes import append_items, append_to_first

Variables = Iterable[tuple[str, str]]
# Keys of the Secret; the first is that of its type.
SECRET_PRIVATE_KEY: Final = "ssh-privatekey"
SECRET_PUBLIC_KEY: Final = "ssh-publickey"
# The field of a job with the path of the SSH files, and mpi-operator's default: root's.
SSH_PATH_FIELD: Final = "sshAuthMountPath"
DEFAULT_SSH_PATH: Final = "/root/.ssh"
_ROLE: Final = "K_MPI_JOB_ROLE"
_SSH_VOLUME: Final = "ssh-auth"
_OWNER_ONLY: Final = 0o600
_SSHD: Final = ("/usr/sbin/sshd", "-De")
_FILES_OF_KEYS: Final = (
    (SECRET_PRIVATE_KEY, ssh_keys.PRIVATE_KEY),
    (SECRET_PUBLIC_KEY, ssh_keys.PUBLIC_KEY),
    (SECRET_PUBLIC_KEY, ssh_keys.AUTHORIZED_KEYS),
)
_CONFIG_MODES: Final = {HOSTFILE: READABLE, DISCOVER_HOSTS: EXECUTABLE}
# Otherwise a runtime that shows all GPUs to containers without a request makes mpirun use them.
_NO_GPUS: Final = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")


@attrs.frozen
class SshVolume:
    """The Secret with a job's key, and where its files are."""

    secret: str
    path: str

    def add_to(self, pod_spec: ReadOnlyJSON) -> ReadOnlyJSON:
        """Return a pod spec whose first container has the files."""
        source: dict[str, Any] = {"secretName": self.secret}
        if self.path == DEFAULT_SSH_PATH:
            # sshd of another user could not read them.
            source["defaultMode"] = _OWNER_ONLY
        source["items"] = [{"key": key, "path": path} for key, path in _FILES_OF_KEYS]
        return _with_volume(pod_spec, {"name": _SSH_VOLUME, "secret": source}, self.path)


def launcher(pod_spec: ReadOnlyJSON, *, environment: Variables, sees_gpus: bool) -> ReadOnlyJSON:
    """Return the spec of a launcher with the environment of its MPI implementation."""
    added = [*_variables([(_ROLE, "launcher"), *environment])]
    if not sees_gpus:
        added += [{"name": name} for name in _NO_GPUS]
    return _with_cluster_dns(append_to_first(pod_spec, env=added))


def with_config(pod_spec: ReadOnlyJSON, config: str) -> ReadOnlyJSON:
    """Return the spec of a launcher with the files by which it finds its workers."""
    return _with_volume(pod_spec, config_volume(config, _CONFIG_MODES), CONFIG_PATH)


def worker(pod_spec: ReadOnlyJSON, *, search_domain: str) -> ReadOnlyJSON:
    """Return the spec of a worker: without command and arguments, it runs sshd."""
    container, *others = pod_spec["containers"]
    if not container.get("command") and not container.get("args"):
        container = {**container, "command": list(_SSHD)}
    spec = append_to_first(
        {**pod_spec, "containers": [container, *others]}, env=_variables([(_ROLE, "worker")])
    )
    # Intel MPI and MPICH dial the launcher by its short name.
    dns = spec.get("dnsConfig") or {}
    searches = [*(dns.get("searches") or []), search_domain]
    return _with_cluster_dns({**spec, "dnsConfig": {**dns, "searches": searches}})


def _with_cluster_dns(pod_spec: ReadOnlyJSON) -> ReadOnlyJSON:
    """Return a pod spec that resolves services even in the network of its node."""
    if not pod_spec.get("hostNetwork"):
        return pod_spec
    return {**pod_spec, "dnsPolicy": "ClusterFirstWithHostNet"}


def _with_volume(pod_spec: ReadOnlyJSON, volume: ReadOnlyJSON, path: str) -> ReadOnlyJSON:
    mount = {"name": volume["name"], "mountPath": path}
    return append_items(append_to_first(pod_spec, volumeMounts=[mount]), volumes=[volume])


def _variables(environment: Variables) -> list[ReadOnlyJSON]:
    return [{"name": name, "value": value} for name, value in environment]
