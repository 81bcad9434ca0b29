"""What a person sees on a terminal, and what a pipe gets."""

import asyncio
import io
import os
import pty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest

from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import JobPhase
from dlctl.cli.display.output import Output
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ReplicaProgress
from dlctl.cli.display.views import LineView, ProgressView, progress_view
from tests.builders import NOW
from tests.cli.terminal import Terminal

REPLICAS = tuple(
    ReplicaProgress(name, name[:6], pod=f"sum-{name}", phase="Running", started=NOW)
    for name in ("master-0", "worker-0")
)
JOB = JobProgress("pytorchjob", ObjectKey("ml", "sum"), phase=JobPhase.RUNNING, replicas=REPLICAS)


@pytest.fixture(autouse=True)
def terminal_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


@asynccontextmanager
async def on_terminal(terminal: Terminal) -> AsyncIterator[ProgressView]:
    """Yield a view; when the block has ended, the terminal shows all that it has written."""
    ours, theirs = pty.openpty()
    feeding = asyncio.create_task(asyncio.to_thread(_feed, terminal, ours))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        async with progress_view(stream) as view:
            yield view
    await feeding
    os.close(ours)


def _feed(terminal: Terminal, fd: int) -> None:
    while True:
        try:
            terminal.feed(os.read(fd, 1 << 16))
        except OSError:
            return


def shown(terminal: Terminal) -> list[str]:
    return [line for line in terminal.lines if line]


async def test_log_lines_are_above_the_table() -> None:
    terminal = Terminal(80)
    async with on_terminal(terminal) as view:
        view.show([JOB], NOW)
        await view.log_lines(JOB, "master-0", ["epoch 1", "epoch 2"], "")
        await view.log_lines(JOB, "worker-0", ["ready"], "")
        view.show([attrs.evolve(JOB, phase=JobPhase.CLEAN_UP)], NOW)
    assert shown(terminal) == [
        "master-0 | epoch 1",
        "master-0 | epoch 2",
        "worker-0 | ready",
        "pytorchjob ml/sum  CleanUp",
        "REPLICA    PHASE     RESTARTS   EXIT CODE   ELAPSED",
        "master-0   Running          0                   0 s",
        "worker-0   Running          0                   0 s",
    ]
    assert b"\x1b[36mmaster-0 | \x1b[0mepoch 1" in terminal.written


async def test_progress_bar_is_redrawn_below_the_table_and_ends_above_it() -> None:
    terminal = Terminal(80)
    async with on_terminal(terminal) as view:
        for percent in range(101):
            await view.log_lines(JOB, "master-0", [], f"{percent}%")
            view.show([JOB], NOW)
        await view.log_lines(JOB, "master-0", ["100%"], "")
        view.show([JOB], NOW)
    assert b"master-0 | \x1b[0m57%" in terminal.written
    assert [line for line in shown(terminal) if "%" in line] == ["master-0 | 100%"]
    assert "\n".join(terminal.lines).count("pytorchjob ml/sum") == 1


async def test_long_and_wide_lines_leave_the_table_whole() -> None:
    terminal = Terminal(80)
    async with on_terminal(terminal) as view:
        view.show([JOB], NOW)
        for length in (60, 69, 70, 150, 500):
            await view.log_lines(JOB, "master-0", ["x" * length], "")
            view.show([JOB], NOW)
        await view.log_lines(JOB, "worker-0", ["\N{CJK UNIFIED IDEOGRAPH-6F22}" * 100], "y" * 200)
        view.show([JOB], NOW)
        view.show([JOB], NOW)
    text = shown(terminal)
    assert "\n".join(text).count("x") == 60 + 69 + 70 + 150 + 500
    assert [line for line in text if line.startswith(("pytorchjob", "REPLICA"))] == text[-4:-2]
    assert not any("y" * 10 in line for line in text)


async def test_many_lines_between_frames_are_all_printed() -> None:
    terminal = Terminal(80)
    async with on_terminal(terminal) as view:
        view.show([JOB], NOW)
        for portion in range(20):
            lines = [f"line {portion * 100 + n}" for n in range(100)]
            await view.log_lines(JOB, "master-0", lines, "")
        view.show([JOB], NOW)
    numbers = [int(line.split()[-1]) for line in shown(terminal) if "| line" in line]
    assert numbers == list(range(2000))


async def test_table_of_many_replicas_leaves_room_for_the_log() -> None:
    terminal = Terminal(80)
    many = tuple(attrs.evolve(REPLICAS[1], name=f"worker-{n}") for n in range(100))
    async with on_terminal(terminal) as view:
        await view.log_lines(JOB, "worker-0", [f"epoch {n}" for n in range(30)], "")
        for _ in range(5):
            view.show([attrs.evolve(JOB, replicas=many)], NOW)
    text = "\n".join(terminal.lines)
    assert [text.count(f"epoch {n}\n") for n in range(30)] == [1] * 30


async def test_lines_of_several_jobs_name_the_job() -> None:
    terminal = Terminal(80)
    other = attrs.evolve(JOB, key=ObjectKey("ml", "mean"))
    async with on_terminal(terminal) as view:
        view.show([JOB, other], NOW)
        await view.log_lines(other, "master-0", ["hello"], "")
    assert "mean master-0 | hello" in terminal.lines


async def test_pipe_gets_plain_lines_and_changes_of_status() -> None:
    stream = io.StringIO()
    async with progress_view(stream) as view:
        view.show([JOB], NOW)
        await view.log_lines(JOB, "master-0", ["epoch 1"], "50%")
        view.show([JOB], NOW)
    lines = [line.partition(" s  ")[2] for line in stream.getvalue().splitlines()]
    assert lines == [
        "pytorchjob ml/sum: Running",
        "sum master-0: Running, pod sum-master-0",
        "sum worker-0: Running, pod sum-worker-0",
        "sum master-0 | epoch 1",
    ]


async def test_progress_bar_in_a_pipe_is_a_line_every_ten_seconds() -> None:
    stream = io.StringIO()
    output = Output(stream)
    now = 0.0
    view = LineView(output, lambda: now)
    for second in range(35):
        now = float(second)
        await view.log_lines(JOB, "master-0", [], f"{second}%")
    await view.log_lines(JOB, "master-0", ["100%"], "")
    await output.drained(0)
    output.close()
    assert [line.split("| ")[1] for line in stream.getvalue().splitlines()] == [
        *("11%", "22%", "33%", "100%")
    ]


async def test_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal(80)
    async with on_terminal(terminal) as view:
        view.show([JOB], NOW)
    assert b"\x1b" not in terminal.written
