"""A machine, or a container around dlctl, that allows no further process."""

import errno
import itertools
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def exec_request(tmp_path: Path) -> Iterator[tuple[ExecProcesses, socket.socket]]:
    """Send a request for a command with two streams, ID 7, which is not handled yet."""
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
        agent.setblocking(False)
        yield processes, agent
        assert len(os.listdir("/proc/self/fd")) == before


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Limit how many more files this process can open."""
    used = set(map(int, os.listdir("/proc/self/fd")))
    limit = next(itertools.islice((fd for fd in itertools.count() if fd not in used), count, None))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def response(agent: socket.socket) -> AgentResponse:
    return msgspec.json.decode(agent.recv(REQUEST_BYTES), type=AgentResponse)


def test_command_for_which_there_is_no_process_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exec_request(tmp_path) as (processes, agent):
        with monkeypatch.context() as machine:
            machine.setattr(os, "fork", _refuse)
            processes.handle_requests()
        assert response(agent) == AgentResponse(7, "[Errno 11] Resource temporarily unavailable")


@pytest.mark.parametrize("free", [0, 1])
def test_command_whose_streams_exceed_the_limit_of_open_files_is_refused(
    tmp_path: Path, free: int
) -> None:
    with exec_request(tmp_path) as (processes, agent):
        with free_descriptors(free):
            processes.handle_requests()
        assert response(agent) == AgentResponse(7, "[Errno 24] Too many open files")
