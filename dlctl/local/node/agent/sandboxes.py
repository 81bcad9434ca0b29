"""The node's side of the agent: networks of pods and running containers, as awaitable calls.

One agent serves all pods of a node; see ``agent_process`` for its start and its two modes.
"""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Final, Literal, NoReturn, TypeVar

import attrs
import msgspec

from dlctl.errors import DlctlError
from dlctl.local.node.protocol import (
    AgentMessage,
    AgentRequest,
    AgentResponse,
    CreateSandbox,
    ExecExited,
    ExecInContainer,
    Exited,
    KillExec,
    OpenSocket,
    RemoveSandbox,
    StartContainer,
    StopContainer,
)

T = TypeVar("T")

NetworkMode = Literal["isolated", "host"]
NetworkChoice = Literal["auto", "isolated", "host"]

# Executing a program takes milliseconds; this allows for a machine that swaps.
RESPONSE_TIMEOUT_S: Final = 30.0
_KILLED: Final = 128 + signal.SIGKILL

AnsweredRequest = CreateSandbox | RemoveSandbox | OpenSocket | StartContainer | ExecInContainer

_decode = msgspec.json.Decoder(AgentMessage).decode


class AgentLostError(DlctlError):
    """The agent has ended, and with it every container of the node."""


class StartError(DlctlError):
    """A program was not executed."""


@attrs.frozen
class Network:
    """How pods are connected; if they share the machine's network, the reason.

    Isolated pods reach the Internet, unless ``no_internet`` says why they do not.
    """

    mode: NetworkMode
    reason: str = ""
    no_internet: str = ""

    @property
    def isolated(self) -> bool:
        return self.mode == "isolated"


@attrs.frozen
class NodeSockets:
    """Sockets in the network of isolated pods, by which the node serves them."""

    # Listens where pods look for the API server.
    api: socket.socket
    # Accepts connections to the outside, and DNS queries; None if the outside is unreachable.
    relay: socket.socket | None = None
    dns: socket.socket | None = None


class Sandboxes:
    """The sandboxes of a node's containers; nothing that runs in them outlives them.

    Calls complete only while :meth:`receive` runs.
    """

    def __init__(
        self,
        network: Network,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        descriptors: socket.socket,
        sockets: NodeSockets | None = None,
        how_ended: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        """Serve requests through the streams; ``how_ended`` is called once they have closed."""
        self.network = network
        # None where pods use the machine's network.
        self.sockets = sockets
        self._reader = reader
        self._writer = writer
        self._descriptors = descriptors
        self._how_ended = how_ended
        self._opening = asyncio.Lock()
        self._last_id = 0
        self._responses: dict[int, asyncio.Future[AgentResponse]] = {}
        self._exits: dict[str, asyncio.Future[int]] = {}
        # Commands beside a container's program, by container and exec ID.
        self._exec_exits: dict[tuple[str, str], tuple[int, asyncio.Future[int]]] = {}
        self._lost = False

    async def create(self, pod: str, ip: str) -> None:
        """Create the network of a pod, given its UID.

        :raises StartError: if it cannot be set up.
        """
        await self._request(CreateSandbox(self._next_id(), pod, ip))

    async def remove(self, pod: str) -> None:
        """Remove the network of a pod, given its UID.

        :raises StartError: if a part of it is left.
        """
        await self._request(RemoveSandbox(self._next_id(), pod))

    async def open_socket(self, pod: str) -> socket.socket:
        """Return an unconnected TCP socket in the network of a pod, or in the machine's own.

        :raises StartError: if there is none, as of a pod without a network.
        """
        if not self.network.isolated:
            return socket.socket()
        async with self._opening:
            request = OpenSocket(self._next_id(), pod)
            await self._request(request)
            # Sent before the response; others belong to requests that were cancelled.
            while True:
                request_id, opened = self._receive_socket()
                if request_id == request.id:
                    break
                if opened is not None:
                    opened.close()
        if opened is None:
            raise StartError("no socket came with the response: too many files may be open")
        return opened

    def _receive_socket(self) -> tuple[int, socket.socket | None]:
        """Return the ID of a request for a socket, and the socket unless it was lost."""
        data, fds, _, _ = socket.recv_fds(self._descriptors, 32, 1)
        if not data:
            raise AgentLostError("the node's agent has ended")
        # The kernel drops what would exceed the limit of open files.
        if not fds:
            return int(data), None
        opened = socket.socket(fileno=fds[0])
        opened.set_inheritable(False)
        return int(data), opened

    async def start(self, start: StartContainer) -> "asyncio.Future[int]":
        """Execute the program; the future is its exit code. Fills in the ``id``."""
        exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._exits[start.container] = exit_code
        try:
            await self._request(msgspec.structs.replace(start, id=self._next_id()))
        except BaseException:
            self._exits.pop(start.container, None)
            # It may run, or be about to: the response is late, or nobody waits for it any more.
            if not self._lost:
                self.stop(start.container, kill=True)
            raise
        return exit_code

    def stop(self, container: str, *, kill: bool) -> None:
        """Send SIGTERM or SIGKILL to the program; the future of its start has the result."""
        self._send(StopContainer(container, kill))

    async def exec(self, run: ExecInContainer) -> "asyncio.Future[int]":
        """Execute a command in a container; the future is its exit code."""
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        run = msgspec.structs.replace(run, id=self._next_id())
        at = run.container, run.exec_id
        self._exec_exits[at] = run.id, end
        try:
            await self._request(run)
        except BaseException:
            # As above, for a client that has disconnected.
            self.kill_exec(*at)
            self._exec_exits.pop(at, None)
            raise
        return end

    def kill_exec(self, container: str, exec_id: str) -> None:
        """Kill a command beside a container's program, unless it has ended."""
        # The agent's end is the end of all commands.
        if not self._lost and (container, exec_id) in self._exec_exits:
            self._send(KillExec(container, exec_id))

    async def receive(self) -> NoReturn:
        """Dispatch the agent's messages until it ends; then every pending call fails."""
        while line := await self._reader.readline():
            message: AgentMessage = _decode(line)
            if isinstance(message, AgentResponse):
                _set_result(self._responses.get(message.id), message)
            elif isinstance(message, ExecExited):
                _, end = self._exec_exits.pop((message.container, message.exec_id), (0, None))
                _set_result(end, message.exit_code)
            elif isinstance(message, Exited):
                _set_result(self._exits.pop(message.container, None), message.exit_code)
                self._end_execs(message.container)
        self._lost = True
        how = await self._how_ended() if self._how_ended else "has ended"
        raise AgentLostError(f"the node's agent, the parent of all programs, {how}")

    def _end_execs(self, container: str) -> None:
        """Complete the commands of a container that has terminated."""
        for at in [at for at in self._exec_exits if at[0] == container]:
            request_id, end = self._exec_exits.pop(at)
            refusal = AgentResponse(request_id, "the container has terminated")
            _set_result(self._responses.get(request_id), refusal)
            _set_result(end, _KILLED)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send(self, request: AgentRequest) -> None:
        if self._lost:
            raise AgentLostError("the node's agent has ended")
        self._writer.write(msgspec.json.encode(request) + b"\n")

    async def _request(self, request: AnsweredRequest) -> None:
        future: asyncio.Future[AgentResponse] = asyncio.get_running_loop().create_future()
        self._responses[request.id] = future
        try:
            self._send(request)
            async with asyncio.timeout(RESPONSE_TIMEOUT_S):
                answer = await future
        except TimeoutError:
            message = f"the node's agent has not responded for {RESPONSE_TIMEOUT_S:g} s"
            raise StartError(message) from None
        finally:
            del self._responses[request.id]
        if answer.error:
            raise StartError(answer.error)


def _set_result(future: "asyncio.Future[T] | None", result: T) -> None:
    # The waiting task may have been cancelled.
    if future is not None and not future.done():
        future.set_result(result)
