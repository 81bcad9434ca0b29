"""The screen of ``dlctl run``: a table of the replicas, with the last log lines of workers below.

Pure: turns values into what rich can draw, or into an SVG.
"""

import datetime
import io
import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlctl.cli.log_tails import Logs
from dlctl.cli.progress import JobProgress, ReplicaProgress

_COLOURS: Final = {
    "Running": "cyan",
    "Succeeded": "green",
    "Failed": "red",
    "Lost": "yellow",
    "CrashLoopBackOff": "yellow",
    "Terminating": "yellow",
}
# As many of a job's log lines as fit below the table.
_MAX_LOGS: Final = 4
_MAX_LOG_LINES: Final = 4
_MAX_ROWS: Final = 24
_MAX_MESSAGES: Final = 4
_WIDTH: Final = 100


def screen(jobs: Iterable[JobProgress], logs: Logs, now: datetime.datetime) -> RenderableType:
    """Return all jobs, each with its table and the last log lines of its workers."""
    parts: list[RenderableType] = []
    for job in jobs:
        parts += [
            _title(job),
            table(job, now),
            *_waiting_messages(job),
            *_last_log_lines(job, logs),
            Text(),
        ]
    return Group(*parts)


def table(job: JobProgress, now: datetime.datetime) -> Table:
    """Return a row per replica; of very many, those that need attention come first."""
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("REPLICA", "POD", "PHASE"):
        shown.add_column(name, no_wrap=True)
    for name in ("RESTARTS", "EXIT CODE", "ELAPSED"):
        shown.add_column(name, justify="right")
    rows = job.replicas
    if len(rows) > _MAX_ROWS:
        rows = tuple(sorted(rows, key=lambda replica: replica.phase in ("Running", "Succeeded")))
    for replica in rows[:_MAX_ROWS]:
        shown.add_row(*_cells(replica, now))
    if len(rows) > _MAX_ROWS:
        shown.add_row(Text(f"and {len(rows) - _MAX_ROWS} more", style="dim"))
    return shown


def render_svg(shown: RenderableType, *, title: str) -> str:
    """Return the screen as an SVG of a terminal."""
    console = Console(
        record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print(shown)
    svg = console.export_svg(title=title)
    # The fonts would be fetched from elsewhere; any monospaced one works.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def _cells(replica: ReplicaProgress, now: datetime.datetime) -> list[Text | str]:
    elapsed_s = replica.elapsed_s(now)
    return [
        replica.name,
        Text(replica.pod, style="dim"),
        Text(replica.phase, style=_COLOURS.get(replica.phase, "")),
        str(replica.restarts),
        "" if replica.exit_code is None else str(replica.exit_code),
        "" if elapsed_s is None else f"{elapsed_s:.0f} s",
    ]


def _title(job: JobProgress) -> Text:
    word = job.state if job.finished else job.phase or "New"
    return Text.assemble((str(job), "bold"), "  ", (word, _COLOURS.get(word, "")))


def _waiting_messages(job: JobProgress) -> Iterable[Text]:
    """Yield why the job and its replicas wait; a message that many share, once."""
    shared = dict.fromkeys(replica.waiting_message for replica in job.replicas)
    for trouble in filter(None, [job.notice, *list(shared)[:_MAX_MESSAGES]]):
        yield Text(trouble, style="yellow")


def _last_log_lines(job: JobProgress, logs: Logs) -> Iterable[Text]:
    """Yield the last log lines of the last replica type: its replicas do the work."""
    worker = job.replicas[-1].type if job.replicas else ""
    names = [replica.name for replica in job.replicas if replica.type == worker]
    for name in names[:_MAX_LOGS]:
        lines = list(logs.get((str(job), name), ()))[-_MAX_LOG_LINES:]
        for line in lines:
            yield Text.assemble((f"{name} | ", "dim"), line, no_wrap=True, overflow="ellipsis")
