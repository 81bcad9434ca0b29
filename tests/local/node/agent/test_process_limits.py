"""A machine, or a container around dlctl, that allows no further process."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

import msgspec
import pytest

from dlctl.local.node.agent.exec_processes import REQUEST_BYTES, ExecProcesses
from dlctl.local.node.protocol import AgentResponse, ExecInContainer, StartContainer

_NO_NAMESPACES: Final = 3
# As the agent, the first process of its namespace: its first try to fork fails.
_FORKS: Final = f"""
import errno, os, sys
from dlctl.local.node import linux
from dlctl.local.node.agent.namespaces import fork_first_process

try:
    linux.unshare(linux.CLONE_NEWPID | (linux.CLONE_NEWUSER if os.geteuid() else 0))
except OSError:
    sys.exit({_NO_NAMESPACES})
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

def refuse():
    raise BlockingIOError(errno.EAGAIN, "no process left")

own, fork = os.open("/proc/self/ns/pid", os.O_RDONLY), os.fork
os.fork = refuse
try:
    fork_first_process(own)
except BlockingIOError:
    print("refused", flush=True)
os.fork = fork
if pid := fork_first_process(own):
    os.waitpid(pid, 0)
else:
    print("process", os.getpid(), flush=True)
"""


def _refuse() -> NoReturn:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def test_container_starts_after_one_for_which_there_was_no_process() -> None:
    argv = [sys.executable, "-c", _FORKS]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode == _NO_NAMESPACES:
        pytest.skip("no namespaces")
    assert done.stdout == "refused\nprocess 1\n", done.stderr


def test_command_for_which_there_is_no_process_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = StartContainer(
        id=1, container="main", pod="pod", argv=[], env={}, cwd="/", log_path=str(tmp_path / "log")
    )
    request = ExecInContainer(
        id=7, container="main", exec_id="a", argv=["true"], stdout="", stderr=""
    )
    agent, init = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with agent, init, open(os.devnull, "wb") as stream:
        processes = ExecProcesses(start, init)
        before = len(os.listdir("/proc/self/fd"))
        socket.send_fds(agent, [msgspec.json.encode(request)], [stream.fileno()] * 2)
        with monkeypatch.context() as machine:
            machine.setattr(os, "fork", _refuse)
            processes.handle_requests()
        assert len(os.listdir("/proc/self/fd")) == before
        agent.setblocking(False)
        response = msgspec.json.decode(agent.recv(REQUEST_BYTES), type=AgentResponse)
    assert response == AgentResponse(7, "[Errno 11] Resource temporarily unavailable")
