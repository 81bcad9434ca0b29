"""Commands beside a container's program, as started by ``kubectl exec``.

They are children of the container's first process, so they see what its program sees and end with
it. The agent writes a request to a socket and sends a signal; the response uses the same socket.
"""

import errno
import os
import signal
import socket
from contextlib import suppress
from typing import Final, NoReturn

import msgspec

from dlctl.local.node.agent import programs
from dlctl.local.node.protocol import (
    AgentResponse,
    ExecExited,
    ExecInContainer,
    KillExec,
    StartContainer,
)

# Announces a request.
EXEC_SIGNAL: Final = signal.SIGUSR1
REQUEST_BYTES: Final = 1 << 17

_decode = msgspec.json.Decoder(ExecInContainer | KillExec).decode


class ExecProcesses:
    """The commands that run beside the program of one container."""

    def __init__(self, start: StartContainer, requests: socket.socket) -> None:
        self._start = start
        self._requests = requests
        self._pids: dict[str, int] = {}
        requests.setblocking(False)

    def handle_requests(self) -> None:
        """Handle the requests that have arrived since the last call."""
        with suppress(BlockingIOError):
            while True:
                data, fds, flags, _ = socket.recv_fds(self._requests, REQUEST_BYTES, 3)
                if not data:
                    return
                for fd in fds:
                    # Otherwise processes that a command leaves behind would hold its output open.
                    os.set_inheritable(fd, False)
                request = _decode(data)
                if isinstance(request, KillExec):
                    self._kill(request.exec_id)
                else:
                    self._run(request, fds, complete=not flags & socket.MSG_CTRUNC)

    def reap(self, pid: int, code: int) -> None:
        """Report the end of a process if it is one of these commands."""
        for run, running in self._pids.items():
            if running == pid:
                del self._pids[run]
                self._send(ExecExited(self._start.container, run, code))
                return

    def _run(self, request: ExecInContainer, fds: list[int], *, complete: bool) -> None:
        try:
            if not complete:
                _raise_too_many_files()
            pid, report = self._fork(request, fds)
        except OSError as error:
            # The system allows no further process or open file.
            pid, report = 0, programs.failure(error)
        finally:
            for fd in fds:
                os.close(fd)
        if report:
            self._send(AgentResponse(request.id, report.decode(errors="replace")))
        else:
            self._pids[request.exec_id] = pid
            self._send(AgentResponse(request.id))

    def _fork(self, request: ExecInContainer, fds: list[int]) -> tuple[int, bytes]:
        """Return the process of a command, and why it was not executed; empty if it was."""
        *given, stdout, stderr = fds
        streams = (given[0] if given else None, stdout, stderr)
        read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                pid = os.fork()
                if pid == 0:
                    self._exec(request, streams, write_fd)
            finally:
                os.close(write_fd)
            # Execution is fast; a pipe closed by it without data means success.
            return pid, os.read(read_fd, REQUEST_BYTES)
        finally:
            os.close(read_fd)

    def _exec(
        self, request: ExecInContainer, streams: tuple[int | None, int, int], report_fd: int
    ) -> NoReturn:
        try:
            env = self._start.env
            if request.terminal:
                env = {"TERM": "xterm"} | env
            terminal = request.terminal
            programs.join_groups(self._start.groups)
            programs.execute(request.argv, env, self._start.cwd, streams, terminal=terminal)
        except (OSError, ValueError) as error:
            os.write(report_fd, programs.failure(error))
            os._exit(1)

    def _kill(self, run: str) -> None:
        if pid := self._pids.get(run):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def _send(self, message: AgentResponse | ExecExited) -> None:
        self._requests.send(msgspec.json.encode(message))


def _raise_too_many_files() -> NoReturn:
    # As the system call would have, had the kernel not dropped the descriptors.
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
