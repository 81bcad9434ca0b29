"""Lines of replicas from the files that the node keeps."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from dlctl.api.meta import ObjectKey
from dlctl.cli.display.log_selection import LogSelection
from dlctl.cli.display.log_tails import LogTails, last_lines
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ContainerRun, ReplicaProgress
from tests.builders import NOW

ALL = LogSelection()
REPLICA = ReplicaProgress(
    "worker-0",
    "worker",
    pod="linear-0",
    phase="Succeeded",
    started=NOW,
    ended=NOW,
    run=ContainerRun("uid-1", "mxnet"),
)
JOB = JobProgress("mxjob", ObjectKey("ml", "linear"))
AGAIN = attrs.evolve(REPLICA, run=ContainerRun("uid-1", "mxnet", 1))
RUNNING = attrs.evolve(REPLICA, phase="Running", ended=None)


def job(*replicas: ReplicaProgress) -> JobProgress:
    return attrs.evolve(JOB, replicas=replicas)


def log(run_dir: Path, start: int = 0) -> Path:
    directory = run_dir / "pods" / "uid-1" / "logs" / "mxnet"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / f"{start}.log"


class Heard:
    """What a view is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.unfinished: list[str] = []

    async def on_lines(
        self, _job: JobProgress, _replica: str, lines: Sequence[str], unfinished: str
    ) -> None:
        self.lines += lines
        self.unfinished.append(unfinished)


async def heard_of(run_dir: Path, *looks: JobProgress, selection: LogSelection = ALL) -> list[str]:
    heard = Heard()
    async with asyncio.TaskGroup() as group:
        tails = LogTails(run_dir, group, selection, heard.on_lines)
        for look in looks:
            tails.follow(look)
        await tails.finish()
    return heard.lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param(b"one\ntwo\n", ["one", "two"], id="whole lines"),
        pytest.param(b"one\ntwo", ["one", "two"], id="no newline at the end"),
        pytest.param(b" 9%\r50%\r99%\r\n", ["99%"], id="the last state of a progress bar"),
        pytest.param(b"\x1b[31mred\x1b[0m\n", ["red"], id="no control sequences"),
        pytest.param(b"\xff\n", ["\N{REPLACEMENT CHARACTER}"], id="no text"),
        pytest.param(b"", [], id="nothing"),
    ],
)
async def test_lines_are_read_in_order(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    log(tmp_path).write_bytes(content)
    assert await heard_of(tmp_path, job(REPLICA)) == lines


def test_last_lines_of_a_run_are_read_from_its_end(tmp_path: Path) -> None:
    log(tmp_path).write_text("".join(f"{n}\n" for n in range(100_000)))
    run = ContainerRun("uid-1", "mxnet")
    assert last_lines(tmp_path, run, 2) == ["99998", "99999"]
    assert last_lines(tmp_path, attrs.evolve(run, number=1), 2) == []


async def test_log_that_is_not_selected_is_not_read(tmp_path: Path) -> None:
    log(tmp_path).write_text("not shown\n")
    other = LogSelection(("worker-1",))
    assert await heard_of(tmp_path, job(REPLICA), selection=other) == []


async def test_each_container_run_is_followed_once(tmp_path: Path) -> None:
    log(tmp_path).write_text("first\n")
    log(tmp_path, 1).write_text("second\n")
    heard = await heard_of(tmp_path, job(REPLICA), job(REPLICA), job(AGAIN))
    # Files are read in threads, in any order.
    assert sorted(heard) == ["first", "second"]


async def test_running_container_is_read_up_to_the_end_of_following(
    tmp_path: Path,
) -> None:
    log(tmp_path).write_text("so far\n")
    heard = await heard_of(tmp_path, job(RUNNING))
    assert heard == ["so far"]


async def test_run_with_an_unobserved_end_is_over_with_the_next_one(tmp_path: Path) -> None:
    log(tmp_path).write_text("first\n")
    log(tmp_path, 1).write_text("second\n")
    heard = Heard()
    async with asyncio.TaskGroup() as group:
        tails = LogTails(tmp_path, group, ALL, heard.on_lines)
        tails.follow(job(RUNNING))
        tails.follow(job(attrs.evolve(RUNNING, run=AGAIN.run)))
        tails.follow(job(AGAIN))
    assert sorted(heard.lines) == ["first", "second"]


async def test_unobserved_run_is_read_before_the_next_one(
    tmp_path: Path,
) -> None:
    log(tmp_path).write_text("first\n")
    log(tmp_path, 1).write_text("second\n")
    heard = await heard_of(tmp_path, job(AGAIN), job(AGAIN))
    assert heard == ["first", "second"]


async def test_replica_that_has_not_started_has_no_log(tmp_path: Path) -> None:
    assert await heard_of(tmp_path, job(ReplicaProgress("worker-0", "worker"))) == []
