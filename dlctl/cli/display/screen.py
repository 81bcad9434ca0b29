"""The screen of ``dlctl run`` below the log lines: a table of the replicas of each job.

Pure: turns values into what rich can draw, or into an SVG.
"""

import datetime
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from dlctl.cli.display.log_lines import LogPrefixes
from dlctl.cli.display.log_selection import chief_first
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ReplicaProgress

_COLOURS: Final = {
    "Running": "cyan",
    "Succeeded": "green",
    "Failed": "red",
    "Lost": "yellow",
    "CrashLoopBackOff": "yellow",
    "Terminating": "yellow",
}
_MAX_ROWS: Final = 24
_MAX_MESSAGES: Final = 4
# Narrower terminals have no room for the long names of pods, or for all numbers.
_POD_WIDTH: Final = 100
_NUMBERS_WIDTH: Final = 60
# The columns, with the width of a terminal that has room for each.
_COLUMNS: Final = {
    "REPLICA": 0,
    "POD": _POD_WIDTH,
    "PHASE": 0,
    "RESTARTS": _NUMBERS_WIDTH,
    "EXIT CODE": 0,
    "ELAPSED": _NUMBERS_WIDTH,
}
_WIDTH: Final = 100


def screen(
    jobs: Iterable[JobProgress],
    now: datetime.datetime,
    *,
    width: int = _WIDTH,
    max_rows: int = _MAX_ROWS,
) -> RenderableType:
    """Return all jobs, each with a table of its replicas and what they wait for."""
    parts: list[RenderableType] = []
    for job in jobs:
        parts += [
            Text(),
            _title(job),
            table(job, now, width=width, max_rows=min(max_rows, _MAX_ROWS)),
            *_waiting_messages(job),
        ]
    parts.append(Text())
    return Group(*parts)


def table(job: JobProgress, now: datetime.datetime, *, width: int, max_rows: int) -> Table:
    """Return a row per replica, the chief first; of very many, those that need attention."""
    columns = [name for name, min_width in _COLUMNS.items() if width >= min_width]
    gap = 3 if width >= _NUMBERS_WIDTH else 2
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for name in columns:
        justify: JustifyMethod = "left" if name in ("REPLICA", "POD", "PHASE") else "right"
        shown.add_column(name, justify=justify, no_wrap=True)
    order = chief_first([replica.name for replica in job.replicas])
    rows = sorted(job.replicas, key=lambda replica: replica.name != order[0])
    if len(rows) > max_rows:
        rows.sort(key=lambda replica: replica.phase in ("Running", "Succeeded"))
    for replica in rows[:max_rows]:
        cells = _cells(replica, now)
        shown.add_row(*(cells[name] for name in columns))
    if len(rows) > max_rows:
        shown.add_row(Text(f"and {len(rows) - max_rows} more", style="dim"))
    return shown


def render_svg(logs: Sequence[tuple[str, str]], shown: RenderableType, *, title: str) -> str:
    """Return log lines, each after the name of its replica, and the screen, as an SVG."""
    console = Console(
        record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, highlight=False
    )
    prefixes = LogPrefixes.of(sorted({name for name, _ in logs}), console)
    for name, line in logs:
        text = Text.from_ansi(prefixes.lines(name, [line]), no_wrap=True, overflow="ellipsis")
        console.print(text)
    console.print(shown)
    svg = console.export_svg(title=title)
    # The fonts would be fetched from elsewhere; any monospaced one works.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def _cells(replica: ReplicaProgress, now: datetime.datetime) -> Mapping[str, Text | str]:
    elapsed_s = replica.elapsed_s(now)
    return {
        "REPLICA": replica.name,
        "POD": Text(replica.pod, style="dim"),
        "PHASE": Text(replica.phase, style=_COLOURS.get(replica.phase, "")),
        "RESTARTS": str(replica.restarts),
        "EXIT CODE": "" if replica.exit_code is None else str(replica.exit_code),
        "ELAPSED": "" if elapsed_s is None else f"{elapsed_s:.0f} s",
    }


def _title(job: JobProgress) -> Text:
    word = job.state if job.is_finished else job.phase or "New"
    return Text.assemble((str(job), "bold"), "  ", (word, _COLOURS.get(word, "")))


def _waiting_messages(job: JobProgress) -> Iterable[Text]:
    """Yield why the job and its replicas wait; a message that many share, once."""
    shared = dict.fromkeys(replica.waiting_message for replica in job.replicas)
    for message in filter(None, [job.notice, *list(shared)[:_MAX_MESSAGES]]):
        yield Text(message, style="yellow")
