"""Shell commands for launchers: their arguments and input. Pure.

The scripts are constants for any POSIX shell. User input is passed as arguments, or, if its size
grows with the number of workers, as input lines: a command travels in a URL, which proxies limit to
8 KiB, while input may have any length. No script waits for the end of its input, which the older
protocol cannot signal, and none requires a program that small images lack.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.objects.scalers import Script
from dlctl.errors import TerminalError

SSH_TIMEOUT_S: Final = 10
# An ssh process takes about 5 MiB of the launcher's memory limit.
MAX_PARALLEL_SSH: Final = 16
MAX_CMDLINE_CHARS: Final = 512
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")

# Arguments: generation, path, number of lines, path, number of lines... A command survives the loss
# of its stream or controller, so it compares generations under a lock before it renames anything.
# The generation is written first: a command that is killed between two files is repeated with it.
_WRITE_FILES_SCRIPT: Final = """\
umask 077
generation=$1 last=${2%/*}/.generation newest= held=
shift
each() {
  act=$1
  shift
  while [ $# -gt 0 ]; do
    "$act" "$1" "$1.$$" "$2" || exit 1
    shift 2
  done
}
fill() {
  # Keeps the mode and owner of an existing file.
  cp -p "$1" "$2" 2>/dev/null
  left=$3
  while [ "$left" -gt 0 ]; do
    IFS= read -r line || return 1
    printf '%s\\n' "$line" || return 1
    left=$((left - 1))
  done >"$2"
}
put() { mv -f "$2" "$1"; }
drop() { rm -f "$2"; }
trap 'each drop "$@"; [ -z "$held" ] || rmdir "$held"' EXIT
trap 'exit 1' HUP INT TERM
each fill "$@"
if command -v flock >/dev/null; then
  exec 9>"$last.lock" || exit 1
  lock() { flock -n 9; }
else
  lock() { mkdir "$last.lock" 2>/dev/null && held=$last.lock; }
fi
tries=8
until lock; do
  if [ "$tries" -eq 0 ]; then
    # The directory of a killed owner remains: it is removed for the next attempt.
    rmdir "$last.lock" 2>/dev/null
    echo "another write holds $last.lock" >&2
    exit 1
  fi
  tries=$((tries - 1))
  sleep 0.2 2>/dev/null || sleep 1
done
{ read -r newest <"$last"; } 2>/dev/null
if [ "$generation" -gt 0 ] && [ "${newest:-0}" -gt "$generation" ] 2>/dev/null; then
  echo superseded
  exit 0
fi
printf '%s\\n' "$generation" >"$last" || exit 1
each put "$@"
"""

# Arguments: number of lines, number of parallel probes, seconds for each.
_PROBE_SCRIPT: Final = """\
if command -v ssh >/dev/null; then by=ssh
elif command -v getent >/dev/null; then by=names
else by=nothing
fi
echo "by $by"
# Old versions take the seconds in another form.
if timeout 5 true 2>/dev/null; then bound="timeout $3"; fi
newline='
'
seek() {
  case $by in
  ssh)
    why=$($bound ssh -n -T -o BatchMode=yes -o StrictHostKeyChecking=no \\
      -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=3 \\
      -o PasswordAuthentication=no "$1" true 2>&1 >/dev/null) ;;
  names)
    why='its name does not resolve'
    $bound getent hosts "$1" >/dev/null 2>&1 ;;
  esac
  if [ $? -eq 0 ]; then echo "ok $1"; else printf 'no %s %.200s\\n' "$1" "${why##*"$newline"}"; fi
}
left=$1
while [ "$left" -gt 0 ]; do
  IFS= read -r host || exit 1
  seek "$host" </dev/null &
  left=$((left - 1))
  [ $((left % $2)) -ne 0 ] || wait
done
wait
"""

# Not `cat`, whose output does not separate the arguments of different processes.
_LIST_CONNECTIONS_SCRIPT: Final = """\
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null
echo
head -c "$1" /proc/[0-9]*/cmdline 2>/dev/null
exit 0
"""

# Arguments: seconds, path, and the variables. The workers are the only line of the input.
_RUN_SCRIPT: Final = """\
IFS= read -r workers || exit 1
seconds=$1 path=$2
shift 2
if timeout 5 true 2>/dev/null; then bound="timeout $seconds"; fi
# After resolving links.
case $(readlink -f "$path" 2>/dev/null) in
/proc/*|/dev/*) echo "$path leads to /proc or /dev, which contain no scripts" >&2; exit 126 ;;
esac
for variable in "$@"; do export "$variable"; done
exec $bound sh -- "$path" "$workers" </dev/null
"""


@attrs.frozen
class ExecRequest:
    """A command, its input, and its timeout in seconds."""

    command: Sequence[str]
    stdin: bytes
    timeout_s: float


def write_files(files: Mapping[str, str], generation: int) -> ExecRequest:
    """Write files, each atomically and ending with a newline unless empty.

    Files of a later generation are kept, and the command succeeds. Generation 0 means unknown and
    replaces any. The generation and a lock are stored in the directory of the first file.
    """
    lines: list[str] = []
    words: list[str] = []
    for path, text in files.items():
        file_lines = text.removesuffix("\n").split("\n") if text else []
        lines += file_lines
        words += [path, str(len(file_lines))]
    return ExecRequest(_sh(_WRITE_FILES_SCRIPT, str(generation), *words), _stdin(lines), 10.0)


def probe_workers(workers: Collection[str]) -> ExecRequest:
    """Probe which workers respond; :func:`~.exec_output.parse_probe` decodes the output."""
    for worker in workers:
        if not _HOST_NAME.fullmatch(worker):
            raise TerminalError(f"{worker!r} is not a valid host name")
    rounds = -(-len(workers) // MAX_PARALLEL_SSH)
    words = [str(len(workers)), str(MAX_PARALLEL_SSH), str(SSH_TIMEOUT_S)]
    return ExecRequest(
        _sh(_PROBE_SCRIPT, *words), _stdin(sorted(workers)), (rounds + 1) * SSH_TIMEOUT_S
    )


def list_connections() -> ExecRequest:
    """List the launcher's connections and processes."""
    return ExecRequest(_sh(_LIST_CONNECTIONS_SCRIPT, str(MAX_CMDLINE_CHARS)), b"", 10.0)


def run_script(script: Script, workers: Iterable[str]) -> ExecRequest:
    """Run a user's script with a comma-separated list of workers as its argument.

    The script has its full timeout; the additional seconds are for the request itself.
    """
    for name, _ in script.env:
        if not _VARIABLE_NAME.fullmatch(name):
            raise TerminalError(f"{name!r} is not a valid name of an environment variable")
    variables = [f"{name}={value}" for name, value in script.env]
    words = _sh(_RUN_SCRIPT, str(script.timeout_s), script.path, *variables)
    return ExecRequest(words, _stdin([",".join(workers)]), script.timeout_s + 10.0)


def _sh(script: str, *words: str) -> Sequence[str]:
    if any("\0" in word for word in words):
        raise TerminalError("the arguments of a command must not contain NUL")
    return ["sh", "-c", script, "sh", *words]


def _stdin(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
