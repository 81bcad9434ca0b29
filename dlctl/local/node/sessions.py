"""Commands that the node runs in its containers for others: streams through named pipes.

The pipes are this node's at one end and the command's at the other, and have no names any more once
it runs. A session ends with its block, whatever the command does.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import IO, Final

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.protocol import RunInside
from dlctl.local.node.sandboxes import Sandboxes

_LIMIT_BYTES: Final = 1 << 16


class NotRunningError(DlctlError):
    """There is no such container, or its program does not run."""


@attrs.define(eq=False)
class Session:
    """A command that runs in a container."""

    stdin: asyncio.StreamWriter | None
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    exit_code: "asyncio.Future[int]"
    _sandboxes: Sandboxes
    _run: RunInside

    def kill(self) -> None:
        if not self.exit_code.done():
            self._sandboxes.kill_inside(self._run.container, self._run.run)


@asynccontextmanager
async def open_session(
    sandboxes: Sandboxes, container: str, argv: Sequence[str], directory: Path, *, stdin: bool
) -> AsyncIterator[Session]:
    """Run a command in a container; ``directory`` is where its pipes may be made.

    :raises StartError: if it cannot be executed.
    """
    names = ("stdin", "stdout", "stderr") if stdin else ("stdout", "stderr")
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(_make_pipes, directory, names)
        try:
            read = {name: stack.enter_context(_open(directory / name, "rb")) for name in names}
            run = RunInside(
                id=0,
                container=container,
                run=directory.name,
                argv=list(argv),
                **{name: str(directory / name) for name in names},
            )
            # Opened before the command, which would read the end of its input else; one can only
            # write to somebody who reads, which is this side until then.
            given = stack.enter_context(_open(directory / "stdin", "wb")) if stdin else None
            exit_code = await sandboxes.run_inside(run)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        if stdin:
            read["stdin"].close()
        session = Session(
            stdin=None if given is None else await _writer(given, stack),
            stdout=await _reader(read["stdout"], stack),
            stderr=await _reader(read["stderr"], stack),
            exit_code=exit_code,
            sandboxes=sandboxes,
            run=run,
        )
        stack.callback(session.kill)
        yield session


def _make_pipes(directory: Path, names: Sequence[str]) -> None:
    directory.mkdir(parents=True, mode=0o700)
    for name in names:
        os.mkfifo(directory / name, 0o600)


def _open(path: Path, mode: str) -> IO[bytes]:
    flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    return open(fd, mode, buffering=0)


async def _reader(pipe: IO[bytes], stack: AsyncExitStack) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
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
    # One that is closed already cannot be aborted, and closes by itself when its reader ends.
    if not transport.is_closing():
        transport.abort()
