"""The files by which mpirun finds its workers and starts processes in them."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dlctl.frameworks.hostfiles import slots_hostfile
from dlctl.frameworks.launcher_access import KUBECTL_PATH

HOSTFILE: Final = "hostfile"
KUBEXEC: Final = "kubexec.sh"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
CONFIG_PATH: Final = "/etc/mpi"
CONFIG_VOLUME: Final = "mpi-job-config"
EXECUTABLE: Final = 0o555
READABLE: Final = 0o444


def config_files(
    workers: Iterable[str], running: Iterable[str], *, launcher: str, slots: int, container: Any
) -> Mapping[str, str]:
    """Return the files by name.

    ``workers`` are all of them, for mpirun; ``running`` are the currently running ones, for elastic
    programs. A ``launcher`` that computes, too, is the first host. A remote process starts in
    ``container``, or by default in a worker's default container.
    """
    first = [launcher] if launcher else []
    # The empty line after the launcher is training-operator's.
    lines = ["#!/bin/sh", *(f"echo {host}:{slots}\n" for host in first)]
    lines += [f"echo {host}:{slots}" for host in running]
    return {
        HOSTFILE: slots_hostfile([*first, *workers], slots),
        KUBEXEC: _kubexec_script(container),
        DISCOVER_HOSTS: "\n".join(lines),
    }


def _kubexec_script(container: Any) -> str:
    """Return a remote shell: ``kubexec.sh HOST COMMAND...`` runs a command in a worker's pod."""
    # The name is user input and becomes part of a script.
    chosen = f" --container {shlex.quote(str(container))}" if container else ""
    run = f'{KUBECTL_PATH}/kubectl exec ${{POD_NAME}}{chosen} -- /bin/sh -c "$*"'
    return "\n".join(["#!/bin/sh", "set -x", "POD_NAME=$1", "shift", run])


def config_map_name(job: str) -> str:
    """Return the name of the ConfigMap with a job's files."""
    return f"{job}-config"


def config_volume(config: str, modes: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the volume of these files of a ConfigMap."""
    items = [{"key": name, "path": name, "mode": mode} for name, mode in modes.items()]
    return {"name": CONFIG_VOLUME, "configMap": {"name": config, "items": items}}
