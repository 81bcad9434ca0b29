"""Output of replicas while they run, and its last lines for those that failed.

Read from the files of the embedded node, which keeps them while it runs: over the API, a log
disappears with its pod, possibly before it is read.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from dlctl.api.meta import UID
from dlctl.cli.display.log_lines import LineSplitter
from dlctl.cli.display.log_selection import LogSelection
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ContainerRun
from dlctl.local.node.containers import logs
from dlctl.local.node.containers.logs import LogFiles, LogOptions
from dlctl.local.node.containers.pod_paths import PodPaths

# New lines of a replica of a job, and the beginning of its next line.
OnLines = Callable[[JobProgress, str, Sequence[str], str], Awaitable[None]]

_TAIL_BYTES: Final = 1 << 16


@attrs.define(eq=False)
class LogTails:
    """Follows each run of the selected replicas to its end, in tasks of the given group.

    Reads on only when ``on_lines`` has returned.
    """

    run_dir: Path
    group: asyncio.TaskGroup
    selection: LogSelection
    on_lines: OnLines
    _followed: dict[ContainerRun, "asyncio.Task[None]"] = attrs.field(init=False, factory=dict)
    _running: dict[tuple[str, str], ContainerRun] = attrs.field(init=False, factory=dict)

    def follow(self, job: JobProgress) -> None:
        """Follow the runs that are new, and finish those that have ended."""
        shown = set(self.selection.shown([replica.name for replica in job.replicas]))
        for replica in job.replicas:
            name = (str(job), replica.name)
            self._running.pop(name, None)
            if replica.run is None or not replica.has_log or replica.name not in shown:
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
        for run in runs:
            splitter = LineSplitter()
            async for chunk in self._chunks((str(job), replica), run):
                lines = splitter.feed(chunk)
                await self.on_lines(job, replica, lines, splitter.unfinished)
            await self.on_lines(job, replica, splitter.finish(), "")

    def _chunks(self, name: tuple[str, str], run: ContainerRun) -> AsyncIterator[bytes]:
        path = _path(self.run_dir, run)
        return logs.read(path, LogOptions(follow=True), lambda: self._running.get(name) != run)


def last_lines(run_dir: Path, run: ContainerRun, count: int) -> list[str]:
    """Return the last lines of a run; blocking, but it reads little."""
    path = _path(run_dir, run)
    try:
        with path.open("rb") as file:
            start = logs.tail_position(path, count)
            file.seek(max(start, path.stat().st_size - _TAIL_BYTES))
            splitter = LineSplitter()
            return [*splitter.feed(file.read()), *splitter.finish()][-count:]
    except FileNotFoundError:
        return []


def _path(run_dir: Path, run: ContainerRun) -> Path:
    return LogFiles(PodPaths.of(run_dir, UID(run.pod_uid)).logs(run.container)).path(run.number)
