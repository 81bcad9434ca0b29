"""Tables of what has been measured, from the results that are stored beside the benchmark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from docs.generate.tables import table

Row = Mapping[str, Any]
_RESULTS: Final = Path(__file__).parents[2] / "bench" / "results.json"
_OWN: Final = "dlctl"
_UNKNOWN: Final = "-"

_CREATION: Final = (
    ("children_ratio", "pods and services", "{:.2f}"),
    ("running_ratio", "all jobs Running", "{:.2f}"),
    ("pods_running_ratio", "all pods running", "{:.2f}"),
    ("plain_running_ratio", "plain pods running", "{:.2f}"),
    ("writes_per_job", "writes per job", "{:,.1f}"),
    ("cpu_ms_per_child", "processor time per child", "{:.2f} ms"),
    ("idle_rss_mb", "memory idle", "{:.0f} MB"),
    ("rss_mb", "memory after", "{:.0f} MB"),
)
_SUSTAINED: Final = (
    ("jobs_per_s", "finished jobs", "{:.1f} /s"),
    ("cpu_ms_per_job", "processor time per job", "{:.1f} ms"),
    ("writes_per_job", "writes per job", "{:.1f}"),
    ("rss_mb", "memory at the end", "{:.0f} MB"),
    ("own_lag_p999_ms", "event loop late by its own work, p99.9", "{:.0f} ms"),
)
_WHOLE_RESTART: Final = (
    ("restart_ratio", "until all new pods exist, relative to plain writers", "{:.2f}"),
    ("writes_per_rank", "writes per rank", "{:.2f}"),
    ("cpu_ms_per_rank", "processor time per rank", "{:.2f} ms"),
)
# Scenarios in the order of the page, with what {0} and {1} of their sizes are, and their figures.
_OTHERS: Final = (
    (
        "floor",
        "pods and services of {0:,} jobs of {1:,}, created and read without a controller",
        (
            ("floor_ratio", "until they exist, relative to plain writers", "{:.2f}"),
            ("floor_running_ratio", "until all pods run, relative to that as well", "{:.2f}"),
        ),
    ),
    (
        "fairness",
        "jobs of {1}, one after the other, while one of {0:,} is created",
        (
            ("idle_s", "all pods of one, before", "{:.2f} s"),
            ("beside_created_s", "all pods of one created, meanwhile: median", "{:.2f} s"),
            ("beside_created_worst_s", "... and the slowest", "{:.2f} s"),
            ("beside_s", "all pods of one shown by a watch, meanwhile: median", "{:.2f} s"),
            ("beside_worst_s", "... and the slowest", "{:.2f} s"),
            ("lag_p999_ms", "event loop late, p99.9", "{:.0f} ms"),
            ("own_lag_p999_ms", "... of that by its own work", "{:.0f} ms"),
        ),
    ),
    (
        "restart",
        "a fresh controller, {0:,} live jobs of {1}",
        (
            ("leading_s", "start of the process until it leads", "{:.1f} s"),
            ("reconciled_s", "until all jobs are reconciled", "{:.1f} s"),
            ("writes", "writes", "{:.0f}"),
            ("longest_stall_ms", "longest stall of the event loop", "{:.0f} ms"),
            ("longest_own_stall_ms", "... by its own work", "{:.0f} ms"),
            ("rss_mb", "memory", "{:.0f} MB"),
        ),
    ),
    (
        "first-write",
        "a cluster with nothing but one new job",
        (("first_write_s", "start of the process until its first write", "{:.1f} s"),),
    ),
    ("job-restart", "restart of a TrainingJob of {0:,} ranks", _WHOLE_RESTART),
    ("gang-restart", "restart of a PyTorchJob of {0:,} ranks by its policy", _WHOLE_RESTART),
    (
        "overload",
        "{0:,} jobs of {1}, API server answers 429",
        (
            ("children_goodput", "children per second, of what gets through", "{:.0%}"),
            ("write_goodput", "all writes per second, of that", "{:.0%}"),
            (
                "children_goodput_of_floor",
                "children per second, of the same ones from plain writers",
                "{:.0%}",
            ),
            ("throttled_share", "writes answered with 429", "{:.1%}"),
            ("longest_reconcile_s", "longest reconcile", "{:.1f} s"),
        ),
    ),
    (
        "foreign",
        "{0:,} pods of others",
        (
            ("grown_mb", "memory that they add to a running operator", "{:.1f} MB"),
            ("started_beside_mb", "... and to one that starts beside them", "{:.1f} MB"),
        ),
    ),
    (
        "live",
        "one more job of {1}, beside up to {0:,} live ones",
        (("flatness", "processor time, relative to that beside 10", "{:.2f}"),),
    ),
    ("sustained", "{0:,} jobs of {1} to their end, 200 at a time", _SUSTAINED),
    ("sustained-ttl", "{0:,} jobs of {1}, deleted a minute after their end", _SUSTAINED),
)


def creation() -> str:
    """Return the figures of jobs that are submitted at once, operator by operator."""
    rows = [row for row in _results() if "children_ratio" in row]
    rows.sort(key=lambda row: (_sizes(row["scenario"]), row["operator"] != _OWN))
    titles = ("jobs x replicas", "operator", *(title for _, title, _ in _CREATION))
    cells = (
        (_in_words(row["scenario"]), row["operator"], *_values(row, _CREATION)) for row in rows
    )
    return table(titles, cells)


def other_scenarios() -> str:
    """Return the figures of all other scenarios, one a line."""
    rows = _results()
    others = sorted({row["operator"] for row in rows} - {_OWN})
    return table(("", "figure", _OWN, *others), _other_rows(rows, [_OWN, *others]))


def conditions() -> str:
    """Return where, when and of which commit each scenario was measured."""
    rows = sorted(_results(), key=lambda row: (row["scenario"], row["operator"]))
    figures = ("scenario", "operator", "rounds", "measured", "commit", "machine")
    return table(figures, ([str(row[figure]) for figure in figures] for row in rows))


def _other_rows(rows: Sequence[Row], operators: Sequence[str]) -> Iterator[Sequence[str]]:
    for name, title, figures in _OTHERS:
        found = [row for row in rows if row["scenario"].partition(":")[0] == name]
        for scenario in sorted({row["scenario"] for row in found}, key=_sizes):
            by_operator = {row["operator"]: row for row in found if row["scenario"] == scenario}
            columns = [_values(by_operator.get(one, {}), figures) for one in operators]
            described = title.format(*_sizes(scenario))
            for index, (_, label, _) in enumerate(figures):
                yield described, label, *(column[index] for column in columns)
                described = ""


def _in_words(scenario: str) -> str:
    return scenario.replace("x", " x ").replace("-", " ")


def _values(row: Row, figures: Sequence[tuple[str, str, str]]) -> list[str]:
    values = ((row.get(key), form) for key, _, form in figures)
    return [_UNKNOWN if value is None else form.format(value) for value, form in values]


def _sizes(scenario: str) -> tuple[int, ...]:
    sizes = scenario.rpartition(":")[2].split("x")
    return tuple(int(size) for size in sizes if size.isdigit())


def _results() -> list[Row]:
    rows: list[Row] = json.loads(_RESULTS.read_text())
    return rows
