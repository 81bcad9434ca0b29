"""The times of lines, from observed sizes of their file."""

import asyncio
import datetime
from pathlib import Path

from dlctl.clock import SystemClock
from dlctl.local.node import linux
from dlctl.local.node.containers.log_times import LineTimes, LogTimes
from dlctl.local.node.containers.logs import LogOptions, read

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def later(seconds: float) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


class _Noon(SystemClock):
    def now(self) -> datetime.datetime:
        return later(60)


def line_times(*observed: tuple[int, float]) -> LineTimes:
    times = LineTimes(_Noon(), NOON)
    for size, seconds in observed:
        times.add(size, later(seconds))
    return times


def test_line_has_the_time_at_which_its_end_was_first_seen() -> None:
    times = line_times((2, 1), (4, 2), (4, 3), (8, 5))
    assert [times.at(end) for end in (1, 2, 3, 8, 9)] == [
        later(1),
        later(1),
        later(2),
        later(5),
        later(60),
    ]
    assert [times.size_before(later(s)) for s in (0.5, 1.5, 2, 9)] == [0, 2, 2, 8]


def test_long_log_keeps_its_last_observations_exact() -> None:
    times = line_times(*((size, size) for size in range(1, 50_000)))
    assert times.at(49_990) == later(49_990)
    assert later(10) <= times.at(10) <= later(50_000)


async def text(path: Path, query: LogOptions, times: LineTimes) -> str:
    return b"".join([each async for each in read(path, query, lambda: True, times)]).decode()


async def test_line_that_was_begun_before_is_part_of_what_came_since(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("a\nbcd\ne\n")
    times = line_times((3, 1), (6, 2), (8, 3))
    assert await text(path, LogOptions(since=later(2)), times) == "bcd\ne\n"
    stamped = await text(path, LogOptions(timestamps=True, tail_lines=1), times)
    assert stamped == "2026-01-01T12:00:03.000000000Z e\n"


async def test_line_of_several_reads_has_one_time(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    long = "a" * (3 << 16)
    path.write_text(f"{long}\r{long}\n\nb")
    times = line_times((1 << 30, 1))
    stamp = "2026-01-01T12:00:01.000000000Z"
    stamped = await text(path, LogOptions(timestamps=True), times)
    assert stamped == f"{stamp} {long}\r{long}\n{stamp} \n{stamp} b"


async def test_file_that_is_not_observed_has_the_time_of_its_start(tmp_path: Path) -> None:
    times = LogTimes(_Noon())
    times.watch(tmp_path / "0.log")
    assert times.of(tmp_path / "0.log").at(1) == later(60)


async def test_deleted_file_is_forgotten(tmp_path: Path) -> None:
    times = LogTimes(SystemClock())
    async with times.observed():
        path = tmp_path / "0.log"
        times.watch(path)
        path.write_text("a\n")
        before = times.of(path)
        path.unlink()
        async with asyncio.timeout(10):
            while times.of(path) is before:  # noqa: ASYNC110
                await asyncio.sleep(0)


def test_inotify_announces_a_write(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    fd = linux.inotify_init()
    with open(fd, "rb", buffering=0) as events:
        linux.inotify_add_watch(fd, str(path), linux.IN_MODIFY)
        path.write_text("x")
        assert events.read(64)
