"""The plots of the page on performance: ``python -m bench.plots RESULTS.json FOLDER``."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.svg import Series, bars, lines

Row = Mapping[str, Any]
_OWN: Final = "dlctl"


def plots(rows: Sequence[Row]) -> dict[str, str]:
    """Return the plots by file name: those for which there are figures."""
    found = {
        "creation.svg": _creation(rows),
        "cpu-by-live-jobs.svg": _live_jobs(
            rows, "cpu_ms_per_job", "Processor time of one more job, in ms"
        ),
        "memory-by-live-jobs.svg": _live_jobs(rows, "memory_mb", "Memory of the operator, in MB"),
        "sustained.svg": _sustained(rows, "sustained", "A steady stream of jobs"),
        "sustained-ttl.svg": _sustained(
            rows, "sustained-ttl", "A steady stream, deleted a minute after"
        ),
        "overload.svg": _overload(rows),
    }
    return {name: plot for name, plot in found.items() if plot}


def _creation(rows: Sequence[Row]) -> str:
    found = [row for row in rows if "children_ratio" in row]
    scenarios = sorted({row["scenario"] for row in found}, key=_order)
    by_key = {(row["operator"], row["scenario"]): row for row in found}
    operators = sorted({row["operator"] for row in found})
    series = [
        Series(
            f"{operator}: {label}",
            [by_key.get((operator, scenario), {}).get(figure) for scenario in scenarios],
        )
        for operator in operators
        for figure, label in (
            ("children_ratio", "children"),
            ("running_ratio", "Running"),
        )
    ]
    labels = [scenario.replace("x", " x ").replace("-", " ") for scenario in scenarios]
    title = "Time until all children exist, and all jobs run, relative to plain writers"
    return bars(title, labels, series, mark=1.0) if found else ""


def _order(scenario: str) -> tuple[list[int], str]:
    """Return what orders scenarios: their sizes, and their names where those are equal."""
    sizes = scenario.rpartition(":")[2].split("x")
    return [int(size) for size in sizes], scenario


def _live_jobs(rows: Sequence[Row], figure: str, title: str) -> str:
    found = [row for row in rows if "live_jobs" in row]
    if not found:
        return ""
    longest = max(found, key=lambda row: len(row["live_jobs"]))["live_jobs"]
    series = [Series(row["operator"], row[figure]) for row in found if row["live_jobs"] == longest]
    return lines(title, "live jobs before", longest, series, log_x=True)


def _sustained(rows: Sequence[Row], scenario: str, title: str) -> str:
    row = _own(rows, scenario)
    if row is None:
        return ""
    series = [Series("jobs per second", row["finished_per_s"])]
    return lines(title, "finished jobs", row["finished_jobs"], series)


def _overload(rows: Sequence[Row]) -> str:
    row = _own(rows, "overload")
    if row is None:
        return ""
    series = [
        Series("dlctl_write_limit", row["write_limit"]),
        Series("dlctl_writes_waiting", row["writes_waiting"]),
    ]
    return lines("Beside an API server that answers 429", "seconds", row["at_s"], series)


def _own(rows: Sequence[Row], scenario: str) -> Row | None:
    """Return dlctl's row of the largest scenario of a name, or None."""
    found = [
        row
        for row in rows
        if row["operator"] == _OWN and row["scenario"].startswith(f"{scenario}:")
    ]
    return max(found, key=lambda row: _order(row["scenario"]), default=None)


def main(results: str, folder: str) -> None:
    Path(folder).mkdir(exist_ok=True)
    for name, plot in plots(json.loads(Path(results).read_text())).items():
        (Path(folder) / name).write_text(plot)


if __name__ == "__main__":
    main(*sys.argv[1:])
