"""Tables in plain text, in the form of kubectl's. Pure."""

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

from dlctl.api.status.verdict import last_verdict
from dlctl.cli.display.log_lines import displayable
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.durations import human_duration

_GAP: Final = "   "
_NONE: Final = "<none>"


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as their longest cell.

    Writers of statuses must not control the reader's terminal.
    """
    rows = [[displayable(cell.encode()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield _GAP.join(cells).rstrip()


def job_table(
    jobs: Sequence[JobSnapshot], now: datetime.datetime, *, wide: bool, namespaces: bool
) -> Iterator[str]:
    """Yield the lines of the table of jobs."""
    header = ["NAME", "STATE", "REPLICAS", "DURATION", "AGE"]
    if namespaces:
        header.insert(0, "NAMESPACE")
    if wide:
        header += ["VERSION", "REASON", "WAITING"]
    yield from aligned([header, *(_row(job, now, wide, namespaces) for job in jobs)])


def _row(job: JobSnapshot, now: datetime.datetime, wide: bool, namespaces: bool) -> list[str]:
    alive, total = job.replica_counts
    row = [
        str(job),
        job.state,
        f"{alive}/{total}",
        duration(job.elapsed_s(now)),
        duration((now - job.created).total_seconds() if job.created else None),
    ]
    if namespaces:
        row.insert(0, job.key.namespace)
    if wide:
        row += [job.kind.resource.api_version, _reason(job), job.waiting_message or _NONE]
    return row


def _reason(job: JobSnapshot) -> str:
    """Return why a job failed, in one line."""
    verdict = last_verdict(job.status.attempts)
    if job.state == "Failed" and verdict is not None:
        return verdict.headline
    return " ".join(job.status.reason.split()) or _NONE


def duration(elapsed_s: float | None) -> str:
    return _NONE if elapsed_s is None else human_duration(elapsed_s)
