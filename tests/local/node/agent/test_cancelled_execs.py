"""Commands and programs whose start is cancelled, as by a client that disconnects: none stays."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from dlctl.local.node.agent.sandboxes import Sandboxes
from dlctl.local.node.containers.exec_sessions import ExecCommand, open_session
from dlctl.local.node.protocol import (
    AgentResponse,
    ExecExited,
    ExecInContainer,
    KillExec,
    StartContainer,
    StopContainer,
)
from tests.local.node.agent.fake_agent import sandboxes_and_agent

# More than a session takes from the agent's response until it is open.
_ITERATIONS = range(12)


async def hold(sandboxes: Sandboxes, directory: Path, *, tty: bool = False) -> None:
    command = ExecCommand(["sleep", "1000"], stdin=True, tty=tty)
    async with open_session(sandboxes, "main", command, directory) as session:
        await session.exit_code


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_command_is_killed_if_its_client_disconnects_before_it_runs(
    tmp_path: Path, tty: bool
) -> None:
    async with sandboxes_and_agent() as (sandboxes, agent):
        client = asyncio.create_task(hold(sandboxes, tmp_path / "run", tty=tty))
        run = await agent.request()
        assert isinstance(run, ExecInContainer)
        await cancel(client)
        assert await agent.request() == KillExec("main", run.exec_id)


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
@pytest.mark.parametrize("iterations", _ITERATIONS)
async def test_command_is_killed_whenever_its_client_disconnects(
    tmp_path: Path, iterations: int, tty: bool
) -> None:
    async with sandboxes_and_agent() as (sandboxes, agent):
        client = asyncio.create_task(hold(sandboxes, tmp_path / "run", tty=tty))
        run = await agent.request()
        assert isinstance(run, ExecInContainer)
        agent.respond(AgentResponse(run.id))
        for _ in range(iterations):
            await asyncio.sleep(0)
        await cancel(client)
        assert await agent.request() == KillExec("main", run.exec_id)


async def test_command_that_has_ended_is_not_killed(tmp_path: Path) -> None:
    async with sandboxes_and_agent() as (sandboxes, agent):
        client = asyncio.create_task(hold(sandboxes, tmp_path / "run"))
        run = await agent.request()
        assert isinstance(run, ExecInContainer)
        agent.respond(AgentResponse(run.id))
        agent.respond(ExecExited("main", run.exec_id, 0))
        await client
        sandboxes.stop("main", kill=True)
        assert await agent.request() == StopContainer("main", kill=True)


async def test_program_is_killed_if_its_start_is_cancelled() -> None:
    async with sandboxes_and_agent() as (sandboxes, agent):
        start = StartContainer(
            id=0, container="main", pod="", argv=["sleep", "1000"], env={}, cwd="/", log_path="log"
        )
        starting = asyncio.create_task(begin(sandboxes, start))
        assert isinstance(await agent.request(), StartContainer)
        await cancel(starting)
        assert await agent.request() == StopContainer("main", kill=True)


async def begin(sandboxes: Sandboxes, start: StartContainer) -> None:
    await (await sandboxes.start(start))


async def cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
