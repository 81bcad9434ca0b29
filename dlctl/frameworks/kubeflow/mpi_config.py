"""The files by which mpirun finds its workers: who they are, how to start a process in one."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dlctl.frameworks.launcher_access import KUBECTL_PATH

HOSTFILE: Final = "hostfile"
KUBEXEC: Final = "kubexec.sh"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
CONFIG_PATH: Final = "/etc/mpi"


def config_files(
    hosts: Iterable[str], running: Iterable[str], *, slots: int = 1, container: Any = None
) -> Mapping[str, str]:
    """Return the files by name.

    ``hosts`` are all that there are to be, for mpirun; those ``running`` now are what elastic
    programs ask for. A remote process starts in the ``container``, or in a worker's default one.
    """
    return {
        HOSTFILE: "".join(f"{host} slots={slots}\n" for host in hosts),
        KUBEXEC: _kubexec_script(container),
        DISCOVER_HOSTS: "\n".join(["#!/bin/sh", *(f"echo {host}:{slots}" for host in running)]),
    }


def _kubexec_script(container: Any) -> str:
    """Return a remote shell: ``kubexec.sh HOST COMMAND...`` runs a command in a worker's pod."""
    # It is the user's word, and this is a script.
    chosen = f" --container {shlex.quote(str(container))}" if container else ""
    run = f'{KUBECTL_PATH}/kubectl exec ${{POD_NAME}}{chosen} -- /bin/sh -c "$*"'
    return "\n".join(["#!/bin/sh", "set -x", "POD_NAME=$1", "shift", run])
