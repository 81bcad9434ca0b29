"""Two ways to watch jobs: a screen that is redrawn, and lines that are appended.

A terminal gets the screen; a pipe or a file gets the lines, free of control sequences.
"""

import datetime
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from dlctl.cli.diff import diff_lines
from dlctl.cli.log_tails import Logs
from dlctl.cli.progress import JobProgress
from dlctl.cli.screen import screen


class ProgressView(Protocol):
    """Shows the progress of jobs for the duration of a ``with`` block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def show(self, jobs: Sequence[JobProgress], logs: Logs, now: datetime.datetime) -> None:
        """Show the current state of all jobs."""
        ...

    def log_line(self, job: JobProgress, replica: str, line: str) -> None:
        """Show a log line of a replica at once."""
        ...


class ScreenView:
    """Redraws one frame in place; the last one stays on the terminal."""

    def __init__(self, console: Console) -> None:
        # Drawn on change only: no thread redraws by itself.
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def show(self, jobs: Sequence[JobProgress], logs: Logs, now: datetime.datetime) -> None:
        self._live.update(screen(jobs, logs, now), refresh=True)

    def log_line(self, job: JobProgress, replica: str, line: str) -> None:
        """Do nothing: the next frame includes the line from the logs."""


class LineView:
    """One line per change, prefixed with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._last: dict[str, JobProgress] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.stdout.flush()

    def show(self, jobs: Sequence[JobProgress], logs: Logs, now: datetime.datetime) -> None:
        for job in jobs:
            last = self._last.get(str(job), JobProgress(job.kind, job.key))
            for line in diff_lines(last, job):
                self._print(line)
            self._last[str(job)] = job

    def log_line(self, job: JobProgress, replica: str, line: str) -> None:
        self._print(f"{job.key.name} {replica} | {line}")

    def _print(self, line: str) -> None:
        print(f"{time.monotonic() - self._started:6.1f} s  {line}", flush=True)


def progress_view(console: Console) -> ScreenView | LineView:
    return ScreenView(console) if console.is_terminal else LineView()
