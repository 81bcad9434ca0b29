"""The files by which a launcher finds its workers: which there are, and how to enter one.

Programs rely on their names and paths; where several forms of one list are, each has its readers.
"""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from dlctl.frameworks.launcher_access import KUBECTL_PATH

HOSTFILE: Final = "hostfile"
DEEPSPEED_HOSTFILE: Final = "deepspeed-hostfile"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
KUBEXEC: Final = "kubexec.sh"
# Where the ConfigMap is mounted, and where copies are that may change.
CONFIG_PATH: Final = "/etc/mpi"
HOSTS_PATH: Final = "/etc/edl"
DEEPSPEED_PATH: Final = "/job"
# The copies, by the files that they are made from.
COPY_PATHS: Final = {
    HOSTFILE: f"{HOSTS_PATH}/{HOSTFILE}",
    DISCOVER_HOSTS: f"{HOSTS_PATH}/{DISCOVER_HOSTS}",
    DEEPSPEED_HOSTFILE: f"{DEEPSPEED_PATH}/{HOSTFILE}",
}

# Lines that are blank are no hosts, and the last one may lack its end.
_DISCOVER_HOSTS_SCRIPT: Final = f"""\
#!/bin/sh
while read -r host || [ -n "$host" ]; do
  [ -z "$host" ] || printf '%s\\n' "$host"
done < {COPY_PATHS[HOSTFILE]}
"""
# Options of ssh mean nothing here; programs that know of no other remote shell give them.
# The stream of a pod that is gone may stay open for ever, so the pod is looked at meanwhile. Who
# looks holds none of the caller's files open. The trap comes last: a shell that has just been
# forked loses signals to the traps of the first.
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


def hostfile(hosts: Iterable[str], slots: int) -> str:
    """Return the list that Horovod reads, by the script that discovers hosts."""
    return "".join(f"{host}:{slots}\n" for host in hosts)


def deepspeed_hostfile(hosts: Iterable[str], slots: int) -> str:
    """Return the list that DeepSpeed reads, and mpirun."""
    return "".join(f"{host} slots={slots}\n" for host in hosts)


def config_files(hosts: Iterable[str], *, slots: int, container: str) -> Mapping[str, str]:
    """Return all files by name; programs are started in this container of the hosts."""
    hosts = list(hosts)
    return {
        HOSTFILE: hostfile(hosts, slots),
        DEEPSPEED_HOSTFILE: deepspeed_hostfile(hosts, slots),
        DISCOVER_HOSTS: _DISCOVER_HOSTS_SCRIPT,
        KUBEXEC: _kubexec_script(container),
    }


def _kubexec_script(container: str) -> str:
    """Return a remote shell: ``kubexec.sh HOST COMMAND...`` runs a command in a worker's pod."""
    # It is the user's word, and this is a script.
    chosen = f" --container {shlex.quote(container)}" if container else ""
    return _KUBEXEC_SCRIPT.format(kubectl=f"{KUBECTL_PATH}/kubectl", container=chosen)
