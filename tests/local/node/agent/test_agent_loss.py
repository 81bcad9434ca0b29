"""What is known of an agent that has ended, and with it all containers of the node."""

import os
import signal
import sys
from pathlib import Path

import pytest

from dlctl.local.node.agent.agent_process import open_sandboxes
from dlctl.local.node.agent.sandboxes import AgentLostError


def children() -> set[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in text.split()}


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGKILL, "was killed: is this machine out of memory[?]"),
        (signal.SIGTERM, "was ended by SIGTERM"),
    ],
)
async def test_signal_that_ended_it_is_named(
    tmp_path: Path, number: signal.Signals, message: str
) -> None:
    before = children()
    async with open_sandboxes(tmp_path / "agent.log", choice="host") as sandboxes:
        (pid,) = children() - before
        os.kill(pid, number)
        with pytest.raises(AgentLostError, match=message):
            await sandboxes.receive()


async def test_error_that_ended_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken" / "msgspec"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('msgspec is broken')\n")
    monkeypatch.setattr(sys, "path", [str(broken.parent), *sys.path])
    async with open_sandboxes(tmp_path / "agent.log", choice="host") as sandboxes:
        with pytest.raises(AgentLostError, match="exit code 1: ImportError: msgspec is broken"):
            await sandboxes.receive()
