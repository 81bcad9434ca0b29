"""The parent process of all containers of a node: ``python -m dlctl.local.node.agent``.

With ``isolated`` it is the first process of its own namespaces: when it ends, the kernel ends every
process in them. It executes requests of the node at the other end of the socket, and ends when that
end closes, so that nothing outlives a killed dlctl. It decides nothing.
"""

import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import msgspec

from dlctl.local.node import linux
from dlctl.local.node.agent import container_init, programs
from dlctl.local.node.agent.exec_processes import EXEC_SIGNAL, REQUEST_BYTES
from dlctl.local.node.agent.namespaces import fork_first_process, isolate
from dlctl.local.node.network.outside_sockets import outside_sockets
from dlctl.local.node.protocol import (
    AgentMessage,
    AgentRequest,
    AgentResponse,
    AgentStarted,
    CreateSandbox,
    ExecInContainer,
    Exited,
    KillExec,
    OpenSocket,
    RemoveSandbox,
    StartContainer,
    StopContainer,
)

if TYPE_CHECKING:
    from dlctl.local.node.network.bridge import Bridge

_decode = msgspec.json.Decoder(AgentRequest).decode


class Agent:
    """One thread, one selector: requests, starts in progress and terminated children."""

    def __init__(
        self, node: socket.socket, descriptors: socket.socket, bridge: "Bridge | None"
    ) -> None:
        self._node = node
        self._descriptors = descriptors
        self._bridge = bridge
        self._pid = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._input = bytearray()
        # Running containers, in both directions; an entry is dropped when the child is reaped.
        self._pids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        # Sockets to the first process of each container, for requests and responses.
        self._init_sockets: dict[str, socket.socket] = {}
        self._pid_namespace: int | None = None
        if bridge is not None:
            self._pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def serve(self) -> None:
        """Handle requests until the node closes its end."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
        self._selector.register(self._node, selectors.EVENT_READ)
        self._selector.register(wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == wake_read:
                    os.read(wake_read, 4096)
                elif key.fd == self._node.fileno():
                    if not self._receive():
                        return
                elif isinstance(key.fileobj, socket.socket):
                    self._forward_to_node(key.fileobj)
                else:
                    self._finish_start(key.fd, key.data)
            self._reap()

    def _send(self, message: AgentMessage) -> None:
        self._node.sendall(msgspec.json.encode(message) + b"\n")

    def _receive(self) -> bool:
        data = self._node.recv(1 << 16)
        self._input += data
        *lines, rest = self._input.split(b"\n")
        self._input = bytearray(rest)
        for line in lines:
            self._handle(_decode(line))
        return bool(data)

    def _handle(self, request: AgentRequest) -> None:
        if isinstance(request, StopContainer):
            self._stop(request)
            return
        if isinstance(request, KillExec):
            # The container may just have ended, and the command with it.
            with suppress(OSError):
                self._forward_to_init(request, [])
            return
        try:
            if isinstance(request, ExecInContainer):
                # The first process of the container responds.
                self._exec(request)
                return
            if isinstance(request, StartContainer):
                # Answered once the program was executed, or failed to be.
                self._start(request)
                return
            self._connect(request)
        except OSError as failure:
            self._send(AgentResponse(request.id, str(failure)))
        else:
            self._send(AgentResponse(request.id))

    def _connect(self, request: CreateSandbox | RemoveSandbox | OpenSocket) -> None:
        if self._bridge is None:
            return
        if isinstance(request, OpenSocket):
            with self._bridge.open_socket(request.pod) as opened:
                socket.send_fds(self._descriptors, [b"%d" % request.id], [opened.fileno()])
        elif isinstance(request, CreateSandbox):
            self._bridge.attach(request.pod, request.ip)
        else:
            self._bridge.detach(request.pod)

    def _start(self, start: StartContainer) -> None:
        read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        namespace = self._pid_namespace
        try:
            pid = os.fork() if namespace is None else fork_first_process(namespace)
        except OSError:
            os.close(read_fd)
            os.close(write_fd)
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            self._become_container(start, write_fd, theirs)
        os.close(write_fd)
        theirs.close()
        self._pids[start.container] = pid
        self._names[pid] = start.container
        self._init_sockets[start.container] = ours
        self._selector.register(read_fd, selectors.EVENT_READ, start.id)
        self._selector.register(ours, selectors.EVENT_READ)

    def _become_container(
        self, start: StartContainer, report_fd: int, requests: socket.socket
    ) -> NoReturn:
        signal.set_wakeup_fd(-1)
        netns_fd = self._bridge.netns_fd(start.pod) if self._bridge else None
        # Containers must not keep the node's socket open: its end shows the others that the agent
        # is gone.
        kept = {report_fd, netns_fd, requests.fileno()}
        for fd in {int(name) for name in os.listdir("/dev/fd")} - kept:
            if fd > 2:
                _close(fd)
        container_init.run(
            start,
            agent_pid=self._pid,
            netns_fd=netns_fd,
            isolated=self._bridge is not None,
            report_fd=report_fd,
            requests=requests,
        )

    def _finish_start(self, fd: int, request_id: int) -> None:
        """Respond to a start: a pipe closed by exec without data means success."""
        report = os.read(fd, 1 << 16)
        self._selector.unregister(fd)
        os.close(fd)
        self._send(AgentResponse(request_id, report.decode(errors="replace")))

    def _stop(self, stop: StopContainer) -> None:
        if (pid := self._pids.get(stop.container)) is None:
            return
        if not stop.kill:
            os.kill(pid, signal.SIGTERM)
        elif self._bridge is not None:
            os.kill(pid, signal.SIGKILL)
        else:
            os.kill(pid, container_init.KILL_TREE)

    def _exec(self, request: ExecInContainer) -> None:
        fds: list[int] = []
        try:
            read, write = (os.O_RDWR,) * 2 if request.terminal else (os.O_RDONLY, os.O_WRONLY)
            if request.stdin:
                fds.append(_open_stream(request.stdin, read))
            fds += [_open_stream(path, write) for path in (request.stdout, request.stderr)]
            if not self._forward_to_init(request, fds):
                self._send(AgentResponse(request.id, "the container has terminated"))
        finally:
            for fd in fds:
                os.close(fd)

    def _forward_to_init(self, request: ExecInContainer | KillExec, fds: list[int]) -> bool:
        """Forward a request to the first process of its container, if there is one."""
        init, pid = self._init_sockets.get(request.container), self._pids.get(request.container)
        if init is None or pid is None:
            return False
        socket.send_fds(init, [msgspec.json.encode(request)], fds)
        os.kill(pid, EXEC_SIGNAL)
        return True

    def _forward_to_node(self, init: socket.socket) -> None:
        try:
            data = init.recv(REQUEST_BYTES)
        except ConnectionResetError:
            # The container ended before it read its last request.
            data = b""
        if data:
            self._node.sendall(data + b"\n")
        else:
            self._selector.unregister(init)
            init.close()

    def _reap(self) -> None:
        while self._names:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # An unknown PID is an orphan of some container, inherited by this process.
            if (name := self._names.pop(pid, None)) is not None:
                del self._pids[name], self._init_sockets[name]
                self._send(Exited(name, programs.exit_code(status)))


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return


def _open_stream(path: str, flags: int) -> int:
    # Do not wait for the other end: the node opened it before sending the request.
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(fd, True)
    return fd


def main(fd: int, descriptors_fd: int, mode: str) -> None:
    node, descriptors = socket.socket(fileno=fd), socket.socket(fileno=descriptors_fd)
    for each in (node, descriptors):
        each.set_inheritable(False)
    bridge = None
    if mode == "host":
        linux.adopt_orphans()
    else:
        try:
            bridge = isolate(node, user_namespace=mode == "user")
        except (OSError, ImportError) as failure:
            node.sendall(msgspec.json.encode(AgentStarted(error=str(failure))) + b"\n")
            return
    if bridge is None:
        node.sendall(msgspec.json.encode(AgentStarted()) + b"\n")
    else:
        _greet(node, bridge)
    Agent(node, descriptors, bridge).serve()


def _greet(node: socket.socket, bridge: "Bridge") -> None:
    """Send the first message, with the sockets that the node serves for its pods."""
    sockets, started = [bridge.api_listener()], AgentStarted()
    try:
        sockets += outside_sockets()
    except OSError as failure:
        started = AgentStarted(no_internet=str(failure))
    socket.send_fds(
        node, [msgspec.json.encode(started) + b"\n"], [opened.fileno() for opened in sockets]
    )
    for opened in sockets:
        opened.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
