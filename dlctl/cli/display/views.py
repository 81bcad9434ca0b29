"""Two ways to watch jobs: log lines above a table that is redrawn, and lines alone.

A terminal gets the table; a pipe or a file gets the lines, free of control sequences.
"""

import datetime
import io
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol, TextIO

import attrs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from dlctl.cli.display.diff import diff_lines
from dlctl.cli.display.log_lines import LogPrefixes
from dlctl.cli.display.output import Output
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.screen import screen

# Lines that wait for the next frame; more than these are written at once.
_MAX_PENDING_CHARS: Final = 1 << 17
# Rows that a terminal keeps for the log, and for what is around a table.
_LOG_ROWS: Final = 8
_FRAME_ROWS: Final = 4
_MAX_UNFINISHED: Final = 4
# Without a terminal, how often the state of a progress bar becomes a line.
_UNFINISHED_S: Final = 10.0


class ProgressView(Protocol):
    """Shows the progress of jobs."""

    def show(self, jobs: Sequence[JobProgress], now: datetime.datetime) -> None:
        """Show the current state of all jobs."""
        ...

    def show_message(self, text: str) -> None:
        """Show a line that is about the command, not about a job."""
        ...

    async def log_lines(
        self, job: JobProgress, replica: str, lines: Sequence[str], unfinished: str
    ) -> None:
        """Show lines of a replica, and the beginning of its next one; wait for a slow reader."""
        ...


@attrs.define(eq=False)
class ScreenView:
    """Prints lines above a frame that it redraws; the last frame stays on the terminal."""

    _output: Output
    _live: Live = attrs.field(init=False)
    _jobs: Sequence[JobProgress] = attrs.field(init=False, default=())
    _now: datetime.datetime = attrs.field(init=False, default=datetime.datetime.min)
    _prefixes: LogPrefixes = attrs.field(init=False, default=LogPrefixes({}))
    _pending: list[str] = attrs.field(init=False, factory=list)
    _pending_chars: int = attrs.field(init=False, default=0)
    _unfinished: dict[str, str] = attrs.field(init=False, factory=dict)
    _ended: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        console = Console(
            file=self._output,  # type: ignore[arg-type]
            force_terminal=True,
            highlight=False,
            markup=False,
            emoji=False,
        )
        # Drawn on change only: no thread redraws by itself.
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="ellipsis")

    def show(self, jobs: Sequence[JobProgress], now: datetime.datetime) -> None:
        names = [_label(job, name, jobs) for job in jobs for name in _names(job)]
        if names != list(self._prefixes.by_name):
            self._prefixes = LogPrefixes.of(names, Console(file=io.StringIO(), force_terminal=True))
        self._jobs, self._now = tuple(jobs), now
        if not self._output.full:
            self._draw()

    def show_message(self, text: str) -> None:
        self._pending.append(f"{text}\n")
        self._draw()

    async def log_lines(
        self, job: JobProgress, replica: str, lines: Sequence[str], unfinished: str
    ) -> None:
        label = _label(job, replica, self._jobs)
        self._unfinished.pop(label, None)
        if unfinished:
            self._unfinished[label] = unfinished
        if lines:
            text = self._prefixes.lines(label, lines)
            self._pending.append(text)
            self._pending_chars += len(text)
        if self._pending_chars > _MAX_PENDING_CHARS:
            self._draw()
        await self._output.drained()

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        self._ended = True
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        text = "".join(self._pending)
        self._pending.clear()
        self._pending_chars = 0
        # Not wrapped and not cropped: the terminal does, and the lines can be copied whole.
        self._live.console.print(_Verbatim(text), end="", crop=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the frame, in a size that leaves room for the log."""
        max_rows = max(console.height - _LOG_ROWS, console.height // 2)
        max_rows = max(max_rows // max(len(self._jobs), 1) - _FRAME_ROWS, 2)
        if self._ended:
            yield screen(self._jobs, self._now, width=options.max_width)
            return
        yield screen(self._jobs, self._now, width=options.max_width, max_rows=max_rows)
        for label, text in list(self._unfinished.items())[:_MAX_UNFINISHED]:
            yield Text.assemble((f"{label} | ", "dim"), text, no_wrap=True, overflow="ellipsis")


@attrs.define(eq=False)
class LineView:
    """One line per change, prefixed with the seconds since the start."""

    _output: Output
    _clock_s: Callable[[], float] = time.monotonic
    _started: float = attrs.field(init=False)
    _last: dict[str, JobProgress] = attrs.field(init=False, factory=dict)
    # When each replica's last line was written.
    _written: dict[str, float] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._started = self._clock_s()

    def show(self, jobs: Sequence[JobProgress], now: datetime.datetime) -> None:
        for job in jobs:
            last = self._last.get(str(job), JobProgress(job.kind, job.key))
            self._write(f"{line}\n" for line in diff_lines(last, job))
            self._last[str(job)] = job

    def show_message(self, text: str) -> None:
        self._write(iter([f"{text}\n"]))

    async def log_lines(
        self, job: JobProgress, replica: str, lines: Sequence[str], unfinished: str
    ) -> None:
        label, now = f"{job.key.name} {replica}", self._clock_s()
        if unfinished and not lines and now > self._written.setdefault(label, now) + _UNFINISHED_S:
            lines = [unfinished]
        if lines:
            self._written[label] = now
            self._write(f"{label} | {line}\n" for line in lines)
        await self._output.drained()

    def _write(self, lines: Iterator[str]) -> None:
        prefix = f"{self._clock_s() - self._started:6.1f} s  "
        self._output.write("".join([prefix + line for line in lines]))


@attrs.frozen
class _Verbatim:
    """Text that reaches the terminal as it is."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self.text)


def is_screen(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can redraw lines."""
    return stream.isatty() and os.environ.get("TERM", "dumb").lower() not in ("dumb", "unknown")


@asynccontextmanager
async def progress_view(stream: TextIO) -> AsyncIterator[ProgressView]:
    """Yield a view for the stream; all of it has been written when the block ends."""
    output = Output(stream)
    try:
        if is_screen(stream):
            view = ScreenView(output)
            view.start()
            try:
                yield view
            finally:
                view.stop()
        else:
            yield LineView(output)
        await output.drained(0)
    finally:
        output.close()


def _names(job: JobProgress) -> list[str]:
    return [replica.name for replica in job.replicas]


def _label(job: JobProgress, replica: str, jobs: Sequence[JobProgress]) -> str:
    """Return the name of a replica, with that of its job if there are several."""
    return replica if len(jobs) < 2 else f"{job.key.name} {replica}"
