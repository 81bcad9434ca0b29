"""The first process of a container: sets up namespaces and mounts, runs the program, cleans up.

Runs in a child that the agent forked, and never returns. It exits with the program's exit code (128
+ n for a signal); processes that the program left behind end with it, even after ``setsid``, and so
do exec'd commands. It is not a shell: the command is not interpreted.
"""

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from dlctl.local.node import linux
from dlctl.local.node.agent import programs
from dlctl.local.node.agent.container_output import ContainerOutput
from dlctl.local.node.agent.exec_processes import EXEC_SIGNAL, ExecProcesses
from dlctl.local.node.agent.mounts import mount_all
from dlctl.local.node.protocol import StartContainer

# Requests the end of the whole process tree where there is no PID namespace; SIGKILL could not be
# forwarded.
KILL_TREE = signal.SIGUSR2

_WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, KILL_TREE, EXEC_SIGNAL}


def run(
    start: StartContainer,
    *,
    agent_pid: int,
    netns_fd: int | None,
    isolated: bool,
    report_fd: int,
    requests: socket.socket,
) -> NoReturn:
    """Run as the container until it terminates."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        # Before the mounts, which may hide the log directory.
        output = ContainerOutput(start.log_path, start.log_limit_bytes)
        _enter(start, netns_fd, agent_pid, isolated=isolated)
        child = os.fork()
        if child == 0:
            programs.join_groups(start.groups)
            streams = (None, output.write_fd, output.write_fd)
            programs.execute(start.argv, start.env, start.cwd, streams)
    except (OSError, ValueError) as failure:
        os.write(report_fd, programs.failure(failure))
        # Nobody asks for it: the report says that nothing has run.
        os._exit(1)
    os.close(report_fd)
    output.start_copying()
    code = _wait(child, ExecProcesses(start, requests), output)
    if not isolated:
        # In a PID namespace the kernel does this when its first process ends.
        _kill_descendants(child)
    output.copy_rest()
    os._exit(code)


def _enter(start: StartContainer, netns_fd: int | None, agent_pid: int, *, isolated: bool) -> None:
    os.setsid()
    if not isolated:
        linux.adopt_orphans()
        linux.die_with_parent(KILL_TREE)
        if os.getppid() != agent_pid:
            # It ended before: there is no signal. In a PID namespace the kernel ends this process.
            os._exit(128 + signal.SIGKILL)
        return
    linux.die_with_parent(signal.SIGKILL)
    if netns_fd is not None:
        linux.setns(netns_fd, linux.CLONE_NEWNET)
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS)
    if start.hostname:
        linux.sethostname(start.hostname)
    mount_all(start.mounts, Path(start.scratch))
    with suppress(PermissionError):
        # Refused where the machine's own /proc is partly masked; PIDs then look foreign, nothing
        # more.
        linux.mount("proc", "/proc", "proc")


def _wait(child: int, processes: ExecProcesses, output: ContainerOutput) -> int:
    arrived = linux.signalfd(_WATCHED)
    code = None
    while code is None:
        output.copy_until_readable(arrived)
        got = signal.sigwaitinfo(_WATCHED).si_signo
        if got == KILL_TREE:
            return 128 + signal.SIGKILL
        if got == EXEC_SIGNAL:
            processes.handle_requests()
        elif got in (signal.SIGTERM, signal.SIGINT):
            with suppress(ProcessLookupError):
                os.kill(child, got)
        code = _reap(child, processes)
    return code


def _reap(child: int, processes: ExecProcesses) -> int | None:
    """Reap terminated children; return the program's exit code if it is among them."""
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            code = programs.exit_code(ended[1])
            if ended[0] == child:
                found = code
            else:
                processes.reap(ended[0], code)
    return found


def _kill_descendants(group: int) -> None:
    """Kill until no child is left: a grandchild becomes a child when its parent ends."""
    with suppress(ChildProcessError):
        while True:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
            for pid in _children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
