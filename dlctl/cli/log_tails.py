"""Output of replicas while they run, and its last lines for those that failed.

Read from the files of the embedded node, which keeps them while it runs: over the API, a log
disappears with its pod, possibly before it is read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from dlctl.api.meta import UID
from dlctl.cli.progress import ContainerRun, JobProgress
from dlctl.local.node import logs
from dlctl.local.node.launch import PodPaths
from dlctl.local.node.logs import LogFiles, LogOptions

# The last lines by job and replica, both as printed.
Logs = Mapping[tuple[str, str], Sequence[str]]

KEPT_LINES: Final = 50
# Longer lines are cut, so that a program that prints dots cannot fill the memory.
_LINE_BYTES: Final = 4096


@attrs.define(eq=False)
class LogTails:
    """Follows each run of each replica to its end, in tasks of the given group."""

    run_dir: Path
    group: asyncio.TaskGroup
    on_line: Callable[[JobProgress, str, str], None]
    lines: dict[tuple[str, str], deque[str]] = attrs.field(init=False, factory=dict)
    _followed: dict[ContainerRun, "asyncio.Task[None]"] = attrs.field(init=False, factory=dict)
    _running: dict[tuple[str, str], ContainerRun] = attrs.field(init=False, factory=dict)

    def follow(self, job: JobProgress) -> None:
        """Follow the runs that are new, and finish those that have ended."""
        for replica in job.replicas:
            name = (str(job), replica.name)
            self._running.pop(name, None)
            if replica.run is None or not replica.has_log:
                continue
            if replica.may_write_log:
                self._running[name] = replica.run
            if replica.run not in self._followed:
                self._followed[replica.run] = self.group.create_task(
                    self._tail(job, replica.name, self._catch_up(replica.run)),
                    name=f"log of {replica.pod}",
                )

    async def finish(self) -> None:
        """Read everything written so far, then stop."""
        self._running.clear()
        if self._followed:
            await asyncio.wait(self._followed.values())

    def _catch_up(self, run: ContainerRun) -> tuple[ContainerRun, ...]:
        """Return the run, preceded by the one before it if that was missed between two updates."""
        before = attrs.evolve(run, number=run.number - 1)
        return (run,) if not run.number or before in self._followed else (before, run)

    async def _tail(self, job: JobProgress, replica: str, runs: Sequence[ContainerRun]) -> None:
        name = (str(job), replica)
        kept = self.lines.setdefault(name, deque(maxlen=KEPT_LINES))
        for run in runs:
            async for line in _lines(self._chunks(name, run)):
                kept.append(line)
                self.on_line(job, replica, line)

    def _chunks(self, name: tuple[str, str], run: ContainerRun) -> AsyncIterator[bytes]:
        directory = PodPaths.of(self.run_dir, UID(run.pod_uid)).logs(run.container)
        path = LogFiles(directory).path(run.number)
        return logs.read(path, LogOptions(follow=True), lambda: self._running.get(name) != run)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _text(line)
        if len(rest) > _LINE_BYTES:
            yield _text(rest)
            rest = b""
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    """Return the line for display: the last state of a progress bar, no control sequences."""
    last = line.rstrip(b"\r").rpartition(b"\r")[2][:_LINE_BYTES].decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in last.expandtabs())
