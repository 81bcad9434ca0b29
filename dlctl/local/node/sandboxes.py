"""The node's end of the agent: networks of pods and running containers, as awaitable calls.

One agent serves all pods of a node. It is started with namespaces if they are granted and without
otherwise; which of the two it became is in :attr:`Sandboxes.network`.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeVar

import attrs
import msgspec

from dlctl.errors import ConfigError, DlctlError
from dlctl.local.node.protocol import (
    Answer,
    CreateSandbox,
    Exited,
    KillInside,
    Message,
    RemoveSandbox,
    Request,
    RunEnded,
    RunInside,
    StartContainer,
    Started,
    StopContainer,
)

T = TypeVar("T")

NetworkMode = Literal["isolated", "host"]
NetworkChoice = Literal["auto", "isolated", "host"]

# Executing a program takes milliseconds; this is for a machine that swaps.
_ANSWER_S: Final = 30.0
_END_S: Final = 10.0
_LINE_LIMIT: Final = 1 << 22
_GREETING_BYTES: Final = 1 << 16
_KILLED: Final = 128 + signal.SIGKILL

Question = CreateSandbox | RemoveSandbox | StartContainer | RunInside

_decode = msgspec.json.Decoder(Message).decode


class AgentLostError(DlctlError):
    """The agent has ended, and with it every container of the node."""


class StartError(DlctlError):
    """A container's program was not executed; ``exit_code`` is what a shell would show."""

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@attrs.frozen
class Network:
    """How pods are connected, and if they share the machine's network, why."""

    mode: NetworkMode
    reason: str = ""

    @property
    def isolated(self) -> bool:
        return self.mode == "isolated"


class Sandboxes:
    """Where the containers of a node run; nothing that runs in it outlives it.

    Calls are answered only while :meth:`listen` runs.
    """

    def __init__(
        self,
        network: Network,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        door: socket.socket | None = None,
    ) -> None:
        self.network = network
        # Listens where isolated pods look for the API server.
        self.door = door
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._exits: dict[str, asyncio.Future[int]] = {}
        # Of what runs beside the program of a container, by container and run.
        self._ends: dict[tuple[str, str], asyncio.Future[int]] = {}
        self._lost = False

    async def create(self, pod: str, ip: str) -> None:
        await self._ask(CreateSandbox(self._next_id(), pod, ip))

    async def remove(self, pod: str) -> None:
        await self._ask(RemoveSandbox(self._next_id(), pod))

    async def start(self, start: StartContainer) -> "asyncio.Future[int]":
        """Execute the program; the future is its exit code. The ``id`` is filled in."""
        exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._exits[start.container] = exit_code
        try:
            await self._ask(msgspec.structs.replace(start, id=self._next_id()))
        except BaseException:
            self._exits.pop(start.container, None)
            raise
        return exit_code

    def stop(self, container: str, *, kill: bool) -> None:
        """Ask the program to end, or make it; the future of its start tells when it has."""
        self._send(StopContainer(container, kill))

    async def run_inside(self, run: RunInside) -> "asyncio.Future[int]":
        """Execute one more program in a container; the future is its exit code."""
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        at = run.container, run.run
        self._ends[at] = end
        try:
            await self._ask(msgspec.structs.replace(run, id=self._next_id()))
        except BaseException:
            self._ends.pop(at, None)
            raise
        return end

    def kill_inside(self, container: str, run: str) -> None:
        """Make a program end that was started beside that of a container."""
        self._send(KillInside(container, run))

    async def listen(self) -> NoReturn:
        """Pass on what the agent says until it ends; then every wait fails."""
        while line := await self._reader.readline():
            message: Message = _decode(line)
            if isinstance(message, Answer):
                _settle(self._answers.get(message.id), message)
            elif isinstance(message, RunEnded):
                at = message.container, message.run
                _settle(self._ends.pop(at, None), message.exit_code)
            elif isinstance(message, Exited):
                _settle(self._exits.pop(message.container, None), message.exit_code)
                self._end_all(message.container)
        self._lost = True
        raise AgentLostError("the node's agent has ended; see its log")

    def _end_all(self, container: str) -> None:
        """Tell those who wait for what ran beside a program that it has ended with it."""
        for at in [at for at in self._ends if at[0] == container]:
            _settle(self._ends.pop(at), _KILLED)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send(self, request: Request) -> None:
        if self._lost:
            raise AgentLostError("the node's agent has ended")
        self._writer.write(msgspec.json.encode(request) + b"\n")

    async def _ask(self, request: Question) -> None:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[request.id] = future
        try:
            self._send(request)
            async with asyncio.timeout(_ANSWER_S):
                answer = await future
        finally:
            del self._answers[request.id]
        if answer.error:
            raise StartError(answer.error, exit_code=answer.exit_code)


def _settle(future: "asyncio.Future[T] | None", result: T) -> None:
    # Whoever waited may have been cancelled.
    if future is not None and not future.done():
        future.set_result(result)


@asynccontextmanager
async def open_sandboxes(log_path: Path, *, choice: NetworkChoice) -> AsyncIterator[Sandboxes]:
    """Run an agent for the duration of the block; afterwards no container is left."""
    async with AsyncExitStack() as stack:
        reason = "asked for"
        for mode in _isolated_modes() if choice != "host" else ():
            trial = _agent(log_path, mode)
            started, door, reader, writer = await stack.enter_async_context(trial)
            if not started.error:
                yield Sandboxes(Network("isolated"), reader, writer, door)
                return
            reason = started.error
        if choice == "isolated":
            raise ConfigError(f"this machine grants no network namespaces: {reason}")
        _, _, reader, writer = await stack.enter_async_context(_agent(log_path, "host"))
        yield Sandboxes(Network("host", reason), reader, writer)


def _isolated_modes() -> tuple[str, ...]:
    # Root in a container often lacks the right itself, but may take it like any other user.
    return ("root", "user") if os.geteuid() == 0 else ("user",)


_Agent = tuple[Started, socket.socket | None, asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _agent(log_path: Path, mode: str) -> AsyncIterator[_Agent]:
    ours, theirs = socket.socketpair()
    with theirs, log_path.open("ab") as log:
        # A session of its own: Ctrl-C is for dlctl, which then stops the pods in order.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "dlctl.local.node.agent", str(theirs.fileno()), mode),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(_ended, process)
        # Before asyncio reads from the socket, which knows nothing of what comes beside the bytes.
        try:
            started, door = await asyncio.to_thread(_greeting, ours)
        except BaseException:
            ours.shutdown(socket.SHUT_RDWR)
            ours.close()
            raise
        if door is not None:
            stack.enter_context(door)
        reader, writer = await asyncio.open_connection(sock=ours, limit=_LINE_LIMIT)
        stack.callback(writer.close)
        yield started, door, reader, writer


async def _ended(process: asyncio.subprocess.Process) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            await process.wait()
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)
        await process.wait()


def _greeting(agent: socket.socket) -> tuple[Started, socket.socket | None]:
    """Return what the agent says first, and the socket that comes with it; blocking."""
    agent.settimeout(_ANSWER_S)
    line, fds, _, _ = socket.recv_fds(agent, _GREETING_BYTES, 1)
    if not line:
        return Started(error="the agent ended before it said anything; see its log"), None
    for fd in fds:
        os.set_inheritable(fd, False)
    message = _decode(line)
    door = socket.socket(fileno=fds[0]) if fds else None
    return message if isinstance(message, Started) else Started(), door
