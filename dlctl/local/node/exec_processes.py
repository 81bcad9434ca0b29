"""Programs that run beside the one of a container, as ``kubectl exec`` starts them.

They are children of the container's first process, so they see what its program sees and end with
it. The agent sends a request and rings with a signal; it is answered on the same socket.
"""

import os
import signal
import socket
from contextlib import suppress
from typing import Final, NoReturn

import msgspec

from dlctl.local.node import programs
from dlctl.local.node.protocol import (
    ExecExited,
    ExecInContainer,
    KillExec,
    Response,
    StartContainer,
)

# Says that there is a request.
EXEC_SIGNAL: Final = signal.SIGUSR1
REQUEST_BYTES: Final = 1 << 17

_decode = msgspec.json.Decoder(ExecInContainer | KillExec).decode
_decode_failure = msgspec.json.Decoder(programs.StartFailure).decode


class ExecProcesses:
    """The programs that were started beside that of one container and have not ended."""

    def __init__(self, start: StartContainer, requests: socket.socket) -> None:
        self._start = start
        self._requests = requests
        self._pids: dict[str, int] = {}
        requests.setblocking(False)

    def handle_requests(self) -> None:
        """Do what the agent has asked for since the last time."""
        with suppress(BlockingIOError):
            while True:
                data, fds, _, _ = socket.recv_fds(self._requests, REQUEST_BYTES, 3)
                if not data:
                    return
                for fd in fds:
                    # Else what a command leaves running holds its output open.
                    os.set_inheritable(fd, False)
                request = _decode(data)
                if isinstance(request, KillExec):
                    self._kill(request.exec_id)
                else:
                    self._run(request, fds)

    def reap(self, pid: int, code: int) -> None:
        """Tell of the end of a process, if it was one of these."""
        for run, running in self._pids.items():
            if running == pid:
                del self._pids[run]
                self._send(ExecExited(self._start.container, run, code))
                return

    def _run(self, request: ExecInContainer, fds: list[int]) -> None:
        *given, stdout, stderr = fds
        streams = (given[0] if given else None, stdout, stderr)
        read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            self._exec(request, streams, write_fd)
        os.close(write_fd)
        for fd in fds:
            os.close(fd)
        # Executing takes no time to speak of; an empty pipe that is closed by it is success.
        report = os.read(read_fd, REQUEST_BYTES)
        os.close(read_fd)
        if report:
            failure = _decode_failure(report)
            self._send(Response(request.id, failure.error, failure.exit_code))
        else:
            self._pids[request.exec_id] = pid
            self._send(Response(request.id))

    def _exec(
        self, request: ExecInContainer, streams: tuple[int | None, int, int], report_fd: int
    ) -> NoReturn:
        try:
            env = self._start.env
            if request.terminal:
                env = {"TERM": "xterm"} | env
            terminal = request.terminal
            programs.execute(request.argv, env, self._start.cwd, streams, terminal=terminal)
        except OSError as error:
            os.write(report_fd, msgspec.json.encode(programs.failure(error)))
            os._exit(1)

    def _kill(self, run: str) -> None:
        if pid := self._pids.get(run):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def _send(self, message: Response | ExecExited) -> None:
        self._requests.send(msgspec.json.encode(message))
