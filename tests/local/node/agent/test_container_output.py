"""What is kept of the output of a program."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from dlctl.local.node.agent.container_output import ContainerOutput
from dlctl.local.node.containers.log_times import LineTimes
from dlctl.local.node.containers.logs import LogOptions, read
from tests.support.timing import ManualClock

LIMIT_BYTES: Final = 1 << 20
BLOCK_BYTES: Final = 1 << 16
LINE: Final = "step {:06}\n"
# A pipe takes this much, without anyone who reads it.
BATCH: Final = 4096


class Program:
    """A program whose output goes to a log."""

    def __init__(self, log: Path, limit_bytes: int) -> None:
        self.steps = 0
        self._log = log
        self._output = ContainerOutput(str(log), limit_bytes)

    def write(self, steps: int) -> None:
        for first in range(self.steps, self.steps + steps, BATCH):
            last = min(first + BATCH, self.steps + steps)
            lines = "".join(LINE.format(step) for step in range(first, last))
            os.write(self._output.write_fd, lines.encode())
            self._output.copy_rest()
        self.steps += steps

    @property
    def log_size(self) -> int:
        return self._log.stat().st_size


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "0.log"


def steps(text: bytes) -> list[int]:
    """Return the steps of whole lines; other lines are none."""
    return [int(line.removeprefix(b"step ")) for line in text.splitlines()]


async def joined(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def used_bytes(log: Path) -> int:
    return log.stat().st_blocks * 512


async def test_log_beyond_its_limit_keeps_its_last_lines(log: Path) -> None:
    Program(log, LIMIT_BYTES).write(500_000)
    assert used_bytes(log) <= LIMIT_BYTES + 2 * BLOCK_BYTES
    found = steps(await joined(read(log, LogOptions(), lambda: True)))
    assert found == list(range(found[0], 500_000))
    assert len(found) * len(LINE.format(0)) > LIMIT_BYTES // 2 - BLOCK_BYTES


async def test_tail_of_a_log_beyond_its_limit(log: Path) -> None:
    Program(log, LIMIT_BYTES).write(500_000)
    last = await joined(read(log, LogOptions(tail_lines=2), lambda: True))
    assert steps(last) == [499_998, 499_999]
    everything = await joined(read(log, LogOptions(), lambda: True))
    assert await joined(read(log, LogOptions(tail_lines=500_000), lambda: True)) == everything


async def test_log_without_a_limit_keeps_all(log: Path) -> None:
    Program(log, 0).write(200_000)
    assert steps(await joined(read(log, LogOptions(), lambda: True))) == list(range(200_000))


async def test_slow_follower_goes_on_with_the_oldest_line_that_is_left(log: Path) -> None:
    program = Program(log, LIMIT_BYTES)
    program.write(10)
    ended = asyncio.Event()
    chunks = read(log, LogOptions(follow=True), ended.is_set)
    assert steps(await anext(chunks)) == list(range(10))
    program.write(500_000)
    ended.set()
    found = steps(await joined(chunks))
    assert found == list(range(found[0], 500_010))
    assert found[0] > 10


@pytest.mark.parametrize("timestamps", [False, True])
async def test_line_of_which_the_end_is_lost_does_not_run_into_the_next_one(
    timestamps: bool, log: Path
) -> None:
    clock = ManualClock()
    program, times = Program(log, LIMIT_BYTES), LineTimes(clock, clock.now())
    program.write(10_000)
    ended = asyncio.Event()
    chunks = read(log, LogOptions(follow=True, timestamps=timestamps), ended.is_set, times)
    begin = await anext(chunks)
    assert not begin.endswith(b"\n")
    program.write(500_000)
    ended.set()
    rest = await joined(chunks)
    sizes = [len(line) for line in (begin + rest).splitlines()]
    cut = sizes.pop(begin.count(b"\n"))
    assert set(sizes) == {sizes[0]}
    assert cut < sizes[0]


async def test_times_of_lines_are_right_after_older_ones_are_lost(log: Path) -> None:
    clock = ManualClock()
    times = LineTimes(clock, clock.now())
    program = Program(log, LIMIT_BYTES)
    program.write(500_000)
    times.add(program.log_size, clock.now())
    clock.seconds += 60
    program.write(1)
    times.add(program.log_size, clock.now())
    query = LogOptions(timestamps=True)
    lines = (await joined(read(log, query, lambda: True, times))).splitlines()
    written = [line.split(b"Z ")[0] for line in lines]
    assert len(set(written[:-1])) == 1
    assert written[-1] > written[0]
    recent = LogOptions(since=clock.now())
    assert steps(await joined(read(log, recent, lambda: True, times))) == [500_000]
