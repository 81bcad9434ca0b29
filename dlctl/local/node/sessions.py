"""Commands that the node runs in its containers for others, beside the programs of those.

A session ends with its block, whatever the command does.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.protocol import RunInside
from dlctl.local.node.sandboxes import Sandboxes
from dlctl.local.node.streams import Streams, pipes, terminal


class NotRunningError(DlctlError):
    """There is no such container, or its program does not run."""


@attrs.frozen
class Command:
    """What to run, and whether it has an input and a terminal."""

    argv: Sequence[str]
    stdin: bool = False
    tty: bool = False


@attrs.frozen
class Session:
    """A command that runs in a container."""

    streams: Streams
    exit_code: "asyncio.Future[int]"
    _sandboxes: Sandboxes
    _run: RunInside

    def kill(self) -> None:
        if not self.exit_code.done():
            self._sandboxes.kill_inside(self._run.container, self._run.run)


@asynccontextmanager
async def open_session(
    sandboxes: Sandboxes, container: str, command: Command, directory: Path
) -> AsyncIterator[Session]:
    """Run a command in a container; ``directory`` is where its pipes may be made.

    :raises StartError: if it cannot be executed.
    """
    made = terminal(stdin=command.stdin) if command.tty else pipes(directory, stdin=command.stdin)
    async with made as ends:
        run = RunInside(
            id=0,
            container=container,
            run=directory.name,
            argv=list(command.argv),
            terminal=command.tty,
            **ends.paths,
        )
        exit_code = await sandboxes.run_inside(run)
        session = Session(await ends.connect(), exit_code, sandboxes, run)
        try:
            yield session
        finally:
            session.kill()
