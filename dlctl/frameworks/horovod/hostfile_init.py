"""The launcher's last init container: copies the host files and waits until hosts are reachable.

It never fails because of a host: a running launcher reports more than one that does not start.
"""

from typing import Final

import attrs

from dlctl.frameworks.horovod.config_files import CONFIG_PATH, COPY_PATHS, DISCOVER_HOSTS, HOSTFILE
from dlctl.options import Options

_DEFAULT_OPTIONS: Final = Options()
MAX_WAIT_S: Final = 60
# Horovod exits immediately if it cannot log in to a host. A missing program in the image is not an
# error. Where the API server is on its own machine, pods share the network, and no name resolves.
# The trap comes last: a shell that has just been forked loses signals to the traps of its parent.
_WAIT_SCRIPT: Final = """\
[ "$KUBERNETES_SERVICE_HOST" != 127.0.0.1 ] || exit 0
resolves() {{
  if command -v getent; then getent hosts "$1"
  elif command -v nslookup; then nslookup "$1"
  fi
}} >/dev/null 2>&1
is_reachable() {{
  if command -v nc; then nc -z -w 1 "$1" 22 </dev/null; else resolves "$1"; fi
}} >/dev/null 2>&1
(
  while IFS=: read -r host slots; do
    reported=
    until {probe} "$host"; do
      [ -n "$reported" ] || echo "waiting for $host"
      reported=yes
      sleep 0.2 2>/dev/null || sleep 1
    done
  done <{hostfile}
) &
waiting=$!
(sleep {wait_s} >/dev/null 2>&1; echo "no longer waiting"; kill "$waiting") &
limit=$!
trap 'exit 143' TERM
wait "$waiting" 2>/dev/null
kill "$limit" 2>/dev/null
exit 0"""


@attrs.frozen
class HostfileInit:
    """The administrator's settings of the container."""

    image: str = _DEFAULT_OPTIONS.elastic_init_container_image


def init_script(*, uses_ssh: bool) -> str:
    """Return the shell script; it copies the files because mounted ConfigMaps are read-only."""
    copies = " && ".join(_copy_command(name, target) for name, target in COPY_PATHS.items())
    wait = _WAIT_SCRIPT.format(
        probe="is_reachable" if uses_ssh else "resolves",
        hostfile=COPY_PATHS[HOSTFILE],
        wait_s=MAX_WAIT_S,
    )
    return f"{copies} || exit 1\n{wait}"


def _copy_command(name: str, target: str) -> str:
    # Readable by all: the launcher's program may run as another user.
    mode = "755" if name == DISCOVER_HOSTS else "644"
    return f"cp {CONFIG_PATH}/{name} {target} && chmod {mode} {target}"
