"""Figures of several rounds as one row for each operator and scenario, and the file of the rows."""

import datetime
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from bench.cluster.scenario import Figures

Row = dict[str, Any]
_CPUS: Final = Path("/proc/cpuinfo")


@attrs.frozen
class Run:
    """One round of a scenario with an operator."""

    operator: str
    scenario: str
    figures: Figures


def medians(runs: Sequence[Run]) -> list[Row]:
    """Return one row for each operator and scenario; of a series, the last one that was taken."""
    grouped: dict[tuple[str, str], list[Figures]] = {}
    for run in runs:
        grouped.setdefault((run.operator, run.scenario), []).append(run.figures)
    return [
        {"operator": operator, "scenario": scenario, "rounds": len(rounds), **_medians(rounds)}
        for (operator, scenario), rounds in grouped.items()
    ]


def _medians(rounds: Sequence[Figures]) -> Row:
    names = dict.fromkeys(name for figures in rounds for name in figures)
    return {name: _median([figures.get(name) for figures in rounds]) for name in names}


def _median(values: Iterable[float | Sequence[float] | None]) -> float | list[float] | None:
    values = list(values)
    if isinstance(last := values[-1], Sequence):
        return [round(value, 3) for value in last]
    known = [value for value in values if isinstance(value, float | int)]
    return round(statistics.median(known), 3) if known else None


def merge(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Return all rows; a new one replaces the old one of its operator and scenario."""
    rows = {(row["operator"], row["scenario"]): row for row in (*old, *new)}
    return sorted(rows.values(), key=lambda row: (row["scenario"], row["operator"]))


def write(path: Path, rows: Sequence[Row]) -> None:
    """Add the rows to a file, with where and when they were measured."""
    circumstances = _circumstances()
    new = [{**row, **circumstances} for row in rows]
    old = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps(merge(old, new), indent=1) + "\n")


def _circumstances() -> Mapping[str, str]:
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit,
        "machine": f"{os.cpu_count()} cores ({_cpu_model()}), Python {platform.python_version()}",
    }


def _cpu_model() -> str:
    if not _CPUS.exists():
        return platform.machine()
    lines = _CPUS.read_text().splitlines()
    found = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.machine())
