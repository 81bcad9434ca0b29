"""The processes of one cluster: started in the background, recorded, stopped.

The list is a file in the cluster's folder, so another program can end what this one started.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from e2e.cluster.errors import ClusterError

_STOP_S: Final = 5.0
_POLL_S: Final = 0.05


@attrs.frozen
class Entry:
    """One start of a program, as recorded in the list."""

    pid: int
    name: str
    command: Sequence[str]
    started: int | None
    """When, in ticks since the machine's start; nothing where it was over before one looked."""

    @property
    def is_alive(self) -> bool:
        # The PID may have been reused. The command line does not identify a process: it is empty
        # for some milliseconds after exec.
        return _stat(self.pid)[1] == self.started and not _has_terminated(self.pid)


@attrs.frozen
class Processes:
    """Programs of one folder that run for one cluster; each has a name, and a log of that name."""

    directory: Path
    programs: Path

    @property
    def _list(self) -> Path:
        return self.directory / "processes"

    def start(self, program: str, *args: str, name: str = "") -> None:
        """Start a program; ``name`` distinguishes several instances of it."""
        self._start(name or program, [str(self.programs / program), *args])

    def restart(self, name: str, *more: str) -> None:
        """Restart a terminated program with its original arguments, and more."""
        entries = [entry for entry in self._entries() if entry.name == name]
        if not entries:
            raise ClusterError(f"{name} has never been started here")
        if entries[-1].is_alive:
            raise ClusterError(f"{name} is running")
        self._start(name, [*entries[0].command, *more])

    def _start(self, name: str, command: Sequence[str]) -> None:
        environment = os.environ | {"PATH": f"{self.programs}:{os.environ['PATH']}"}
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        # It is reaped when it is stopped, so the interpreter need not warn.
        process.returncode = 0
        entry = Entry(process.pid, name, command, _stat(process.pid)[1])
        with self._list.open("a") as entries:
            entries.write(f"{json.dumps(attrs.asdict(entry))}\n")

    def running(self) -> dict[str, int]:
        """Return the running processes by name."""
        return {entry.name: entry.pid for entry in self._entries() if entry.is_alive}

    def stop(self, names: Iterable[str] | None = None) -> None:
        """Stop the named processes, or all, gracefully first; stopped ones are no error."""
        running = self.running()
        chosen = [pid for name, pid in running.items() if names is None or name in names]
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal(chosen, number)
            deadline = time.monotonic() + _STOP_S
            while chosen and time.monotonic() < deadline:
                chosen = [pid for pid in chosen if not _is_over(pid)]
                time.sleep(_POLL_S)
        if names is None:
            self._list.unlink(missing_ok=True)

    def kill(self, name: str) -> None:
        """Kill a process, as a crash would."""
        if pid := self.running().get(name):
            _signal([pid], signal.SIGKILL)
            while not _is_over(pid):
                time.sleep(_POLL_S)

    def _entries(self) -> Iterator[Entry]:
        if self._list.exists():
            yield from (Entry(**json.loads(line)) for line in self._list.read_text().splitlines())


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_over(pid: int) -> bool:
    """Return whether a process has terminated; reap it if it is a child."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return _has_terminated(pid)


def _has_terminated(pid: int) -> bool:
    # A zombie has, and its parent has not noticed yet.
    return _stat(pid)[0] in ("", "Z") and not _has_further_threads(pid)


def _has_further_threads(pid: int) -> bool:
    """Return whether a process has more than its first thread, any of which keeps its ports."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def _stat(pid: int) -> tuple[str, int | None]:
    """Return the state of a process and its start time; the state is empty if it does not exist."""
    try:
        # The fields after the name, which is in parentheses and may contain anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", None
    return fields[0], int(fields[19])
