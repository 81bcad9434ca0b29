"""The streams of a command in a container: named pipes, or a terminal.

The command opens them by path, so this side must create and open them before it starts.
"""

import asyncio
import os
import shutil
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import IO, Final

import attrs

from dlctl.local.node.agent.sandboxes import StartError

_LIMIT_BYTES: Final = 1 << 16


@attrs.frozen
class ContainerStreams:
    """Stdin, stdout and stderr of a running command, from the outside."""

    stdin: asyncio.StreamWriter | None
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    resize: Callable[[int, int], None] = lambda _columns, _rows: None


@attrs.frozen
class StreamPaths:
    """The paths that the command opens, and a function that connects to them afterwards."""

    paths: Mapping[str, str]
    connect: Callable[[], Awaitable[ContainerStreams]]


@asynccontextmanager
async def pipes(directory: Path, *, stdin: bool) -> AsyncIterator[StreamPaths]:
    """Create a pipe for each stream in a temporary directory.

    :raises StartError: if the file system refuses.
    """
    names = ("stdin", "stdout", "stderr") if stdin else ("stdout", "stderr")
    async with AsyncExitStack() as stack:
        try:
            await asyncio.to_thread(_make_pipes, directory, names)
        except OSError as error:
            raise StartError(f"pipes of the command: {error}") from error
        stack.push_async_callback(asyncio.to_thread, shutil.rmtree, directory, ignore_errors=True)
        read = {name: stack.enter_context(_open(directory / name, "rb")) for name in names}
        # Opened before the command starts, which would otherwise read EOF; writing needs a reader,
        # which until then is this side.
        given = stack.enter_context(_open(directory / "stdin", "wb")) if stdin else None

        async def connect() -> ContainerStreams:
            if stdin:
                read["stdin"].close()
            stdout = await _reader(read["stdout"], stack)
            stderr = await _reader(read["stderr"], stack)
            # Last: if this is cancelled, no stream may be left open.
            writer = None if given is None else await _writer(given, stack)
            return ContainerStreams(writer, stdout, stderr)

        yield StreamPaths({name: str(directory / name) for name in names}, connect)


@asynccontextmanager
async def terminal(*, stdin: bool) -> AsyncIterator[StreamPaths]:
    """Create a terminal for all streams: stderr is part of stdout."""
    ours, theirs = os.openpty()
    path = os.ttyname(theirs)
    async with AsyncExitStack() as stack:
        # Held until the command has opened it; otherwise this side would read EOF.
        held = stack.enter_context(_file(theirs, "rb"))
        output = stack.enter_context(_file(ours, "rb"))
        given = stack.enter_context(_file(os.dup(ours), "wb"))
        # Open for the whole block: the others are closed as soon as the command ends.
        sized = stack.enter_context(_file(os.dup(ours), "rb"))

        async def connect() -> ContainerStreams:
            held.close()
            nothing = asyncio.StreamReader()
            nothing.feed_eof()
            stdout = await _reader(output, stack)
            return ContainerStreams(
                stdin=await _writer(given, stack),
                stdout=stdout,
                stderr=nothing,
                resize=lambda columns, rows: termios.tcsetwinsize(sized, (rows, columns)),
            )

        names = ("stdin", "stdout", "stderr") if stdin else ("stdout", "stderr")
        yield StreamPaths(dict.fromkeys(names, path), connect)


class _TerminalReaderProtocol(asyncio.StreamReaderProtocol):
    """Treats the error of a terminal without other users as EOF."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None if isinstance(exc, OSError) else exc)


def _make_pipes(directory: Path, names: Sequence[str]) -> None:
    directory.mkdir(parents=True, mode=0o700)
    for name in names:
        os.mkfifo(directory / name, 0o600)


def _open(path: Path, mode: str) -> IO[bytes]:
    flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    return _file(fd, mode)


def _file(fd: int, mode: str) -> IO[bytes]:
    return os.fdopen(fd, mode, buffering=0)


async def _reader(pipe: IO[bytes], stack: AsyncExitStack) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT_BYTES)
    protocol = _TerminalReaderProtocol(reader)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, pipe)
    stack.callback(transport.close)
    return reader


async def _writer(pipe: IO[bytes], stack: AsyncExitStack) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
    stack.callback(_abort, transport)
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _abort(transport: asyncio.WriteTransport) -> None:
    # A closing transport cannot be aborted, and closes by itself when its reader ends.
    if not transport.is_closing():
        transport.abort()
