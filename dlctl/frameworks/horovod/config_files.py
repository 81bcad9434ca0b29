"""The files by which a launcher finds and reaches its workers.

Programs rely on their names and paths; each format of the host list has its own readers.
"""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from dlctl.frameworks.hostfiles import colon_hostfile, slots_hostfile
from dlctl.frameworks.launcher_access import KUBECTL_PATH

HOSTFILE: Final = "hostfile"
DEEPSPEED_HOSTFILE: Final = "deepspeed-hostfile"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
KUBEXEC: Final = "kubexec.sh"
# Where the ConfigMap is mounted, and where its mutable copies are.
CONFIG_PATH: Final = "/etc/mpi"
HOSTS_PATH: Final = "/etc/edl"
DEEPSPEED_PATH: Final = "/job"
# The paths of the copies, by source file.
COPY_PATHS: Final = {
    HOSTFILE: f"{HOSTS_PATH}/{HOSTFILE}",
    DISCOVER_HOSTS: f"{HOSTS_PATH}/{DISCOVER_HOSTS}",
    DEEPSPEED_HOSTFILE: f"{DEEPSPEED_PATH}/{HOSTFILE}",
}

# Skips blank lines; the last line may lack its newline.
_DISCOVER_HOSTS_SCRIPT: Final = f"""\
#!/bin/sh
while read -r host || [ -n "$host" ]; do
  [ -z "$host" ] || printf '%s\\n' "$host"
done < {COPY_PATHS[HOSTFILE]}
"""
# Ignores options of ssh, which programs without support for other remote shells pass. The stream of
# a deleted pod may stay open indefinitely, so a background loop polls the pod; it holds none of the
# caller's files open. The trap comes last: a shell that has just been forked loses signals to the
# traps of its parent.
_KUBEXEC_SCRIPT: Final = """\
#!/bin/sh
skip() {{
  OPTIND=1
  while getopts o:p:i:l:F:qxnTt option; do :; done
}}
skip "$@"
shift $((OPTIND - 1))
POD_NAME=${{1#*@}}
shift
skip "$@"
shift $((OPTIND - 1))
kubectl={kubectl}
"$kubectl" exec "$POD_NAME"{container} -- /bin/sh -c "$*" &
program=$!
look() {{
  "$kubectl" get pod "$POD_NAME" --ignore-not-found \\
    -o 'jsonpath={{.metadata.uid}} {{.status.phase}}'
}}
(
  known=
  while sleep 10 && kill -0 "$program"; do
    now=$(look) || continue
    case $now in *' Running') known=${{known:-$now}} ;; esac
    if [ -n "$known" ] && [ "$now" != "$known" ]; then
      kill "$program"
      exit
    fi
  done
) </dev/null >/dev/null 2>&1 &
watch=$!
trap 'kill "$program" 2>/dev/null' HUP INT TERM
wait "$program"
code=$?
kill "$watch" 2>/dev/null
exit "$code"
"""


def config_files(hosts: Iterable[str], *, slots: int, container: str) -> Mapping[str, str]:
    """Return all files by name; programs run in this container of the hosts."""
    return {
        **host_files(hosts, slots),
        DISCOVER_HOSTS: _DISCOVER_HOSTS_SCRIPT,
        KUBEXEC: _kubexec_script(container),
    }


def host_files(hosts: Iterable[str], slots: int) -> Mapping[str, str]:
    """Return the files that follow the hosts, by name; each host runs ``slots`` processes."""
    hosts = list(hosts)
    # Horovod reads the first one through the discovery script.
    return {
        HOSTFILE: colon_hostfile(hosts, slots),
        DEEPSPEED_HOSTFILE: slots_hostfile(hosts, slots),
    }


def _kubexec_script(container: str) -> str:
    """Return a remote shell: ``kubexec.sh HOST COMMAND...`` runs a command in a worker's pod."""
    # The name is user input and becomes part of a script.
    chosen = f" --container {shlex.quote(container)}" if container else ""
    return _KUBEXEC_SCRIPT.format(kubectl=f"{KUBECTL_PATH}/kubectl", container=chosen)
