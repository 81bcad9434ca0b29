"""The processes of one cluster: started into the background, written down, ended again.

The list is a file in the cluster's folder, so another program can end what this one started.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

_STOP_S: Final = 5.0
_POLL_S: Final = 0.05


@attrs.frozen
class Processes:
    """Programs of one folder that run for one cluster; each has a log of its name."""

    directory: Path
    programs: Path

    @property
    def _list(self) -> Path:
        return self.directory / "pids"

    def start(self, name: str, *args: str) -> int:
        environment = os.environ | {"PATH": f"{self.programs}:{os.environ['PATH']}"}
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self.programs / name), *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        with self._list.open("a") as pids:
            pids.write(f"{process.pid} {name}\n")
        return process.pid

    def running(self) -> dict[str, int]:
        """Return the process of each program that is alive; of two of a name, the later one."""
        if not self._list.exists():
            return {}
        lines = (line.split() for line in self._list.read_text().splitlines())
        return {name: int(pid) for pid, name in lines if self._is_alive(int(pid), name)}

    def stop(self, names: Iterable[str] | None = None) -> None:
        """End the named programs, or all, first politely; those not running are no error."""
        running = self.running()
        chosen = [pid for name, pid in running.items() if names is None or name in names]
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(chosen, number)
            deadline = time.monotonic() + _STOP_S
            while chosen and time.monotonic() < deadline:
                chosen = [pid for pid in chosen if not _is_over(pid)]
                time.sleep(_POLL_S)
        if names is None:
            self._list.unlink(missing_ok=True)

    def kill(self, name: str) -> None:
        """End a program as a crash would."""
        if pid := self.running().get(name):
            self._signal([pid], signal.SIGKILL)
            while not _is_over(pid):
                time.sleep(_POLL_S)

    def _signal(self, pids: Iterable[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _is_alive(self, pid: int, name: str) -> bool:
        # The number may belong to somebody else by now.
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        return command.split(b"\0")[0] == str(self.programs / name).encode()


def _is_over(pid: int) -> bool:
    """Tell whether a process has ended, and take notice if it was a child of ours."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return not Path(f"/proc/{pid}").exists()
