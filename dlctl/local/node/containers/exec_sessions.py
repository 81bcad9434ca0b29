"""Commands that the node runs in containers, beside their programs.

A session ends with its block, whatever the command does.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.agent.sandboxes import Sandboxes
from dlctl.local.node.containers.exec_streams import ContainerStreams, pipes, terminal
from dlctl.local.node.protocol import ExecInContainer


class NotRunningError(DlctlError):
    """The container does not exist, or its program does not run."""


@attrs.frozen
class ExecCommand:
    """A command, and whether it has stdin and a terminal."""

    argv: Sequence[str]
    stdin: bool = False
    tty: bool = False


@attrs.frozen
class ContainerSession:
    """A command running in a container."""

    streams: ContainerStreams
    exit_code: "asyncio.Future[int]"
    _sandboxes: Sandboxes
    _exec: ExecInContainer

    def kill(self) -> None:
        self._sandboxes.kill_exec(self._exec.container, self._exec.exec_id)


@asynccontextmanager
async def open_session(
    sandboxes: Sandboxes, container: str, command: ExecCommand, directory: Path
) -> AsyncIterator[ContainerSession]:
    """Run a command in a container; its pipes are created in ``directory``.

    :raises StartError: if it cannot be executed.
    """
    made = terminal(stdin=command.stdin) if command.tty else pipes(directory, stdin=command.stdin)
    async with made as ends:
        run = ExecInContainer(
            id=0,
            container=container,
            exec_id=directory.name,
            argv=list(command.argv),
            terminal=command.tty,
            **ends.paths,
        )
        exit_code = await sandboxes.exec(run)
        try:
            yield ContainerSession(await ends.connect(), exit_code, sandboxes, run)
        finally:
            sandboxes.kill_exec(container, run.exec_id)
