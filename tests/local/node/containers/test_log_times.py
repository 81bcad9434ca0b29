"""The times of lines, from observed sizes of their file."""

import asyncio
import datetime
import itertools
import shutil
from pathlib import Path

from dlctl.api.meta import ObjectKey
from dlctl.clock import SystemClock
from dlctl.local.node import linux
from dlctl.local.node.containers.log_times import LineTimes, LogTimes
from dlctl.local.node.containers.logs import LogArchive, LogFiles, LogOptions, read

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
    path.write_text(f"1%\r2%\n{long}\r{long}\n\nb")
    times = line_times((3, 1), (6, 2), (1 << 30, 3))
    second, third = (f"2026-01-01T12:00:0{s}.000000000Z" for s in (2, 3))
    stamped = await text(path, LogOptions(timestamps=True), times)
    lines = (f"{second} 1%\r2%", f"{third} {long}\r{long}", f"{third} ", f"{third} b")
    assert stamped == "\n".join(lines)


class _CountingClock(SystemClock):
    calls = 0

    def now(self) -> datetime.datetime:
        self.calls += 1
        return later(60)


async def test_loop_runs_while_the_times_of_many_short_lines_are_looked_up(
    tmp_path: Path,
) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"\n" * 60_000)
    clock = _CountingClock()
    seen = [0]

    async def watch() -> None:
        while True:
            seen.append(clock.calls)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    await text(path, LogOptions(timestamps=True), LineTimes(clock, NOON))
    watching.cancel()
    assert clock.calls == 60_000
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 1000


async def test_file_that_is_not_observed_has_the_time_of_its_start(tmp_path: Path) -> None:
    times = LogTimes(_Noon())
    times.watch(tmp_path / "0.log")
    assert times.of(tmp_path / "0.log").at(1) == later(60)


def archived_logs(directory: Path, archive: LogArchive, starts: int) -> list[Path]:
    """Return the logs of the starts of a container, links to files that stay."""
    files = LogFiles(directory)
    for start in range(starts):
        files.rotate(start)
        archive.keep(files.path(start), ObjectKey("default", "a"), "main")
    return [files.path(start) for start in range(starts)]


def watch_count(times: LogTimes) -> int:
    """Return how many files the kernel watches."""
    return Path(f"/proc/self/fdinfo/{times._fd}").read_text().count("inotify wd:")


async def test_archived_logs_of_a_removed_pod_are_forgotten(tmp_path: Path) -> None:
    times, archive = LogTimes(SystemClock()), LogArchive(tmp_path / "archive")
    async with times.observed():
        for name in ("a", "b"):
            for path in archived_logs(tmp_path / name, archive, starts=2):
                times.watch(path)
        assert watch_count(times) == 4
        shutil.rmtree(tmp_path / "a")
        times.forget(tmp_path / "a")
        assert watch_count(times) == 2
        times.forget(tmp_path / "b")
        assert watch_count(times) == 0


async def test_only_the_logs_of_the_last_two_starts_are_observed(tmp_path: Path) -> None:
    times, archive = LogTimes(SystemClock()), LogArchive(tmp_path / "archive")
    async with times.observed():
        logs = archived_logs(tmp_path / "a", archive, starts=5)
        for path in logs:
            times.watch(path)
        assert watch_count(times) == 2
        assert [times.of(path).observed for path in logs] == [False, False, False, True, True]


async def test_log_whose_start_is_tried_again_is_observed_once(tmp_path: Path) -> None:
    times = LogTimes(SystemClock())
    async with times.observed():
        for _ in range(2):
            times.watch(tmp_path / "0.log")
        assert watch_count(times) == 1
        (tmp_path / "0.log").write_text("a\n")
        async with asyncio.timeout(10):
            while not times.of(tmp_path / "0.log").size_before(later(10**9)):  # noqa: ASYNC110
                await asyncio.sleep(0)
        (tmp_path / "0.log").unlink()
        times.forget(tmp_path)
        assert watch_count(times) == 0


async def test_logs_that_the_kernel_does_not_announce_are_forgotten(tmp_path: Path) -> None:
    times = LogTimes(_Noon())
    times.watch(tmp_path / "0.log")
    before = times.of(tmp_path / "0.log")
    times.forget(tmp_path)
    assert times.of(tmp_path / "0.log") is not before


def test_inotify_announces_a_write(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    fd = linux.inotify_init()
    with open(fd, "rb", buffering=0) as events:
        linux.inotify_add_watch(fd, str(path), linux.IN_MODIFY)
        path.write_text("x")
        assert events.read(64)
