"""The agent's process: started with namespaces where the system allows it, otherwise without.

It ends with the block, and with it every container of the node.
"""

import asyncio
import os
import signal
import socket
import sys
import sysconfig
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import msgspec

from dlctl.errors import ConfigError
from dlctl.local.node.agent.sandboxes import (
    RESPONSE_TIMEOUT_S,
    Network,
    NetworkChoice,
    NodeSockets,
    Sandboxes,
)
from dlctl.local.node.protocol import LINE_LIMIT, AgentMessage, AgentStarted

_STOP_TIMEOUT_S: Final = 10.0
_STARTED_BYTES: Final = 1 << 16

_decode = msgspec.json.Decoder(AgentMessage).decode


@asynccontextmanager
async def open_sandboxes(log_path: Path, *, choice: NetworkChoice) -> AsyncIterator[Sandboxes]:
    """Run an agent for the duration of the block; no container is left afterwards."""
    async with AsyncExitStack() as stack:
        reason = "requested"
        for mode in _isolated_modes() if choice != "host" else ():
            trial = _run_agent(log_path, mode)
            agent = await stack.enter_async_context(trial)
            if not agent.started.error:
                network = Network("isolated", no_internet=agent.started.no_internet)
                yield agent.sandboxes(network, NodeSockets(*agent.sockets))
                return
            reason = agent.started.error
        if choice == "isolated":
            raise ConfigError(
                f"this machine allows no network namespaces: {reason}; use --network host"
            )
        agent = await stack.enter_async_context(_run_agent(log_path, "host"))
        yield agent.sandboxes(Network("host", reason))


def _isolated_modes() -> tuple[str, ...]:
    # Root in a container often lacks the capability, but may use a user namespace like any other
    # user.
    return ("root", "user") if os.geteuid() == 0 else ("user",)


@attrs.frozen
class _AgentConnection:
    """The connection to a running agent, with its first message."""

    started: AgentStarted
    # Sent with it; none of an agent without namespaces.
    sockets: Sequence[socket.socket]
    # Receives the sockets that are requested later.
    descriptors: socket.socket
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    how_ended: Callable[[], Awaitable[str]]

    def sandboxes(self, network: Network, sockets: NodeSockets | None = None) -> Sandboxes:
        return Sandboxes(
            network, self.reader, self.writer, self.descriptors, sockets, self.how_ended
        )


@asynccontextmanager
async def _run_agent(log_path: Path, mode: str) -> AsyncIterator[_AgentConnection]:
    ours, theirs = socket.socketpair()
    descriptors, their_descriptors = socket.socketpair(type=socket.SOCK_SEQPACKET)
    given = theirs.fileno(), their_descriptors.fileno()
    with theirs, their_descriptors, log_path.open("ab") as log:
        # A session of its own: Ctrl-C is for dlctl, which then stops the pods in order.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            # -P: no module of the directory in which the user is.
            *("-P", "-m", "dlctl.local.node.agent", *map(str, given), mode),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=given,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())},
        )
    async with AsyncExitStack() as stack:
        stack.enter_context(descriptors)
        stack.push_async_callback(_ended, process)
        # Before asyncio reads from the socket: it ignores file descriptors sent along with the
        # bytes.
        try:
            started, sockets = await asyncio.to_thread(_receive_started, ours, log_path)
        except BaseException:
            ours.shutdown(socket.SHUT_RDWR)
            ours.close()
            raise
        for opened in sockets:
            stack.enter_context(opened)
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_LIMIT)
        stack.callback(writer.close)
        how_ended = partial(_how_ended, process, log_path)
        yield _AgentConnection(started, sockets, descriptors, reader, writer, how_ended)


def _import_path() -> list[str]:
    """Return where the agent finds modules: Python's own first, so no ``types.py`` of the user's.

    The directory of a notebook or of a test is on the path of the program that opens a cluster.
    """
    own = (
        sysconfig.get_path("stdlib"),
        os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload"),
    )
    return sorted((path for path in sys.path if path), key=lambda path: path not in own)


async def _how_ended(process: asyncio.subprocess.Process, log_path: Path) -> str:
    """Return how an agent has ended whose connection is closed; its log is about to be removed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    code = process.returncode
    if code is None:
        return "has closed its connection"
    if code == -signal.SIGKILL:
        return "was killed: is this machine out of memory?"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"has ended with exit code {code}{_last_words(log_path)}"


def _last_words(log_path: Path) -> str:
    """Return the last line of an agent's log, such as that of a traceback."""
    with suppress(OSError):
        lines = log_path.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((f": {line}" for line in reversed(lines) if line.strip()), "")
    return ""


async def _ended(process: asyncio.subprocess.Process) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)
        await process.wait()


def _receive_started(
    agent: socket.socket, log_path: Path
) -> tuple[AgentStarted, list[socket.socket]]:
    """Return the agent's first message, and the sockets sent with it; blocking."""
    agent.settimeout(RESPONSE_TIMEOUT_S)
    line, fds, _, _ = socket.recv_fds(agent, _STARTED_BYTES, len(attrs.fields(NodeSockets)))
    if not line:
        reason = f"the agent ended before its first message{_last_words(log_path)}"
        return AgentStarted(error=reason), []
    for fd in fds:
        os.set_inheritable(fd, False)
    message = _decode(line)
    sockets = [socket.socket(fileno=fd) for fd in fds]
    return message if isinstance(message, AgentStarted) else AgentStarted(), sockets
