"""The output of containers: one file per start, read as ``kubectl logs`` requests it.

The last two starts are kept, or all of them in an archive. Outside of one, a log has its last
part only, after a hole that its offsets count.
"""

import asyncio
import datetime
import io
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.local.node.containers.log_times import KEPT_LOGS, LineTimes

# Beyond this a log loses its older half; a kubelet keeps 10 MiB.
MAX_LOG_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 1 << 16
# Delay until a new line of a followed log is seen.
_POLL_S: Final = 0.1
# Lines whose times are looked up before the event loop runs again: a chunk may be all newlines.
_LINES_PER_TURN: Final = 1000


@attrs.frozen
class LogOptions:
    """The requested part of a log; times are known only of the node's own."""

    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    since: datetime.datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


@attrs.frozen
class LogFiles:
    """The logs of one container."""

    directory: Path

    def path(self, start: int) -> Path:
        return self.directory / f"{start}.log"

    def rotate(self, start: int) -> None:
        """Prepare for a start; delete the log of the start before the previous one."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if start >= KEPT_LOGS:
            self.path(start - KEPT_LOGS).unlink(missing_ok=True)


@attrs.define
class LogArchive:
    """A directory that keeps each log of each container: ``POD/CONTAINER-NUMBER.log``.

    Numbers count the starts in all pods of that name. Files of an earlier cluster are replaced.
    """

    directory: Path
    _starts: dict[tuple[str, str], int] = attrs.field(init=False, factory=dict)

    def keep(self, log: Path, pod: ObjectKey, container: str) -> None:
        """Make the log of a start, which does not exist yet, a link to a file of the archive."""
        if log.is_symlink():
            return
        # As on a real node; a name contains no underscore.
        name = pod.name if pod.namespace == "default" else f"{pod.namespace}_{pod.name}"
        directory = self.directory / name
        directory.mkdir(parents=True, exist_ok=True)
        number = self._starts.get((name, container), 0)
        if number == 0:
            for old in directory.iterdir():
                if re.fullmatch(re.escape(container) + r"-\d+\.log", old.name):
                    old.unlink()
        self._starts[name, container] = number + 1
        log.symlink_to(directory.absolute() / f"{container}-{number}.log")


async def read(
    path: Path, query: LogOptions, ended: Callable[[], bool], times: LineTimes | None = None
) -> AsyncIterator[bytes]:
    """Yield the file; with ``follow``, also what is appended until ``ended``."""
    left = query.limit_bytes
    start = await asyncio.to_thread(_start, path, query, times)
    output = _contents(path, start, lambda: not query.follow or ended())
    if query.timestamps and times is not None:
        output = _with_times(output, times)
    async for _, data in output:
        if left is None:
            yield data
            continue
        yield data[:left]
        left -= len(data)
        if left <= 0:
            return


async def _contents(
    path: Path, position: int, ended: Callable[[], bool]
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the parts of a file and their offsets; a line whose end is lost ends there."""
    begins = True
    while True:
        # Checked before reading: the program's last output was written before it ended.
        last = ended()
        found, data = await asyncio.to_thread(_read_kept, path, position)
        if data:
            if found != position and not begins:
                yield position, b"\n"
            yield found, data
            position, begins = found + len(data), data.endswith(b"\n")
        elif last:
            return
        else:
            await asyncio.sleep(_POLL_S)


async def _with_times(
    output: AsyncIterator[tuple[int, bytes]], times: LineTimes
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the output, each line after its time: that of its end, or of what is read of it."""
    begins = True
    async for position, data in output:
        stamped, end = [], position
        for index, line in enumerate(io.BytesIO(data), 1):
            end += len(line)
            if begins:
                stamped.append(_stamp(times.at(end)))
            stamped.append(line)
            begins = line.endswith(b"\n")
            if index % _LINES_PER_TURN == 0:
                await asyncio.sleep(0)
        yield position, b"".join(stamped)


@lru_cache(maxsize=16)
def _stamp(time: datetime.datetime) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()


def _start(path: Path, query: LogOptions, times: LineTimes | None) -> int:
    """Return the offset of the first requested line."""
    position = tail_position(path, query.tail_lines)
    if query.since is None or times is None:
        return position
    return max(position, _line_start(path, times.size_before(query.since)))


def _line_start(path: Path, position: int) -> int:
    """Return the offset at which the line of a position begins."""
    first = 0
    with suppress(FileNotFoundError), path.open("rb") as file:
        first = _first_line(file.fileno())
        while position > first:
            begin = max(position - _CHUNK_BYTES, first)
            found = os.pread(file.fileno(), position - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            position = begin
    return first


def tail_position(path: Path, lines: int | None) -> int:
    """Return the offset of the last lines, or of all; an unfinished line counts as one."""
    first = 0
    # The pod may be removed at any time.
    with suppress(FileNotFoundError), path.open("rb") as file:
        first = _first_line(file.fileno())
        if lines is None:
            return first
        end = file.seek(0, os.SEEK_END)
        if lines == 0:
            return end
        # The newline at the end of the last line separates nothing.
        limit, wanted = max(end - 1, 0), lines
        while limit > first:
            position = max(limit - _CHUNK_BYTES, first)
            file.seek(position)
            chunk = file.read(limit - position)
            limit, found = position, len(chunk)
            if (count := chunk.count(b"\n")) < wanted:
                wanted -= count
                continue
            for _ in range(wanted):
                found = chunk.rfind(b"\n", 0, found)
            return position + found + 1
    return first


def _read_kept(path: Path, position: int) -> tuple[int, bytes]:
    """Return the part at an offset, or the first one after it that the log still has."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return position, b""
    try:
        data = os.pread(fd, _CHUNK_BYTES, position)
        # Compared after reading: what is read of a hole are zeros.
        while position < _kept_from(fd):
            position = _first_line(fd)
            data = os.pread(fd, _CHUNK_BYTES, position)
        return position, data
    finally:
        os.close(fd)


def _kept_from(fd: int) -> int:
    """Return the size of the hole at the beginning of a log."""
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        # It is empty.
        return 0


def _first_line(fd: int) -> int:
    """Return the offset of the first whole line that a log still has."""
    kept_from = _kept_from(fd)
    if not kept_from:
        return 0
    return kept_from + os.pread(fd, _CHUNK_BYTES, kept_from).find(b"\n") + 1
