"""When the lines of logs were written: how large their files were at which times.

Another process writes the files, so the kernel announces writes (inotify). Where it does not, lines
have the time of their program's start.
"""

import asyncio
import datetime
import os
import struct
from bisect import bisect_left
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from dlctl.clock import Clock
from dlctl.local.node import linux

# A container's logs of its last starts: of the present and the previous one.
KEPT_LOGS: Final = 2
# The least time between two observations of all files: programs may write all the time.
_PAUSE_S: Final = 0.05
_EVENT: Final = struct.Struct("iIII")
_READ_BYTES: Final = 1 << 16
_LIMIT: Final = 20_000


@attrs.define(eq=False)
class LineTimes:
    """The observed sizes of one file, in order."""

    clock: Clock
    started_at: datetime.datetime
    observed: bool = True
    _sizes: list[int] = attrs.field(init=False, factory=list)
    _times: list[datetime.datetime] = attrs.field(init=False, factory=list)

    def add(self, size: int, time: datetime.datetime) -> None:
        if self._sizes and size <= self._sizes[-1]:
            return
        self._sizes.append(size)
        self._times.append(time)
        if len(self._sizes) > _LIMIT:
            # Every second observation is enough for the older half.
            del self._sizes[0 : _LIMIT // 2 : 2], self._times[0 : _LIMIT // 2 : 2]

    def at(self, size: int) -> datetime.datetime:
        """Return when the file had reached a size."""
        if not self.observed:
            return self.started_at
        index = bisect_left(self._sizes, size)
        # The output may be newer than the last observation.
        return self._times[index] if index < len(self._times) else self.clock.now()

    def size_before(self, time: datetime.datetime) -> int:
        """Return how large the file was before a time."""
        index = bisect_left(self._times, time)
        return self._sizes[index - 1] if index else 0


class LogTimes:
    """The line times of all logs of a node, for as long as the block of :meth:`observed` runs.

    The logs of a container are in one directory, and only those of its last starts are observed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fd: int | None = None
        self._path_by_watch: dict[int, Path] = {}
        self._watch_by_path: dict[Path, int] = {}
        self._logs_by_directory: dict[Path, dict[Path, LineTimes]] = {}

    @asynccontextmanager
    async def observed(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        try:
            self._fd = fd = linux.inotify_init()
        except OSError:
            # The machine's limit is reached.
            yield
            return
        loop.add_reader(fd, self._on_events)
        try:
            yield
        finally:
            self._fd = None
            loop.remove_reader(fd)
            os.close(fd)

    def watch(self, path: Path) -> None:
        """Observe the file of a program that is about to start."""
        logs = self._logs_by_directory.setdefault(path.parent, {})
        # Also of an earlier try of this start.
        self._forget(path)
        times = logs[path] = LineTimes(self._clock, self._clock.now())
        for old in list(logs)[:-KEPT_LOGS]:
            self._forget(old)
        path.touch(mode=0o600)
        if self._fd is None:
            times.observed = False
            return
        try:
            watch = linux.inotify_add_watch(self._fd, str(path), linux.IN_MODIFY)
        except OSError:
            times.observed = False
            return
        self._path_by_watch[watch], self._watch_by_path[path] = path, watch

    def forget(self, directory: Path) -> None:
        """Observe the logs of a container no longer.

        The kernel does so by itself only for deleted files, not for those of an archive.
        """
        for path in list(self._logs_by_directory.get(directory, ())):
            self._forget(path)
        self._logs_by_directory.pop(directory, None)

    def _forget(self, path: Path) -> None:
        self._logs_by_directory[path.parent].pop(path, None)
        watch = self._watch_by_path.pop(path, None)
        if watch is None:
            return
        self._path_by_watch.pop(watch, None)
        if self._fd is not None:
            # The kernel removes the watch of a deleted file.
            with suppress(OSError):
                linux.inotify_rm_watch(self._fd, watch)

    def of(self, path: Path) -> LineTimes:
        """Return the times of a log; of one that is not observed, the present time."""
        times = self._logs_by_directory.get(path.parent, {}).get(path)
        return times or LineTimes(self._clock, self._clock.now(), observed=False)

    def _on_events(self) -> None:
        fd, now = self._fd, self._clock.now()
        if fd is None:
            return
        events = os.read(fd, _READ_BYTES)
        # Files have no names in their own events.
        for watch, _, _, _ in _EVENT.iter_unpack(events):
            if path := self._path_by_watch.get(watch):
                self._observe(path, now)
        loop = asyncio.get_running_loop()
        loop.remove_reader(fd)
        loop.call_later(_PAUSE_S, self._resume, fd)

    def _observe(self, path: Path, now: datetime.datetime) -> None:
        try:
            self._logs_by_directory[path.parent][path].add(path.stat().st_size, now)
        except OSError:
            return

    def _resume(self, fd: int) -> None:
        if self._fd == fd:
            asyncio.get_running_loop().add_reader(fd, self._on_events)
