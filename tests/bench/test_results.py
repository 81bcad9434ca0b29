"""Rounds become medians, and rows replace older ones."""

import json
from pathlib import Path

from bench.cluster import results
from bench.cluster.results import Row, Run, medians, merge


def test_row_has_the_medians_of_its_operator_and_scenario() -> None:
    runs = [
        Run("dlctl", "1x8", {"ratio": 1.0}),
        Run("peer", "1x8", {"ratio": 5.0}),
        Run("dlctl", "1x8", {"ratio": 3.0}),
        Run("dlctl", "1x8", {"ratio": 1.5}),
    ]
    assert medians(runs) == [
        {"operator": "dlctl", "scenario": "1x8", "rounds": 3, "ratio": 1.5},
        {"operator": "peer", "scenario": "1x8", "rounds": 1, "ratio": 5.0},
    ]


def test_unknown_figure_of_one_round_does_not_count() -> None:
    runs = [Run("dlctl", "1x8", {"ratio": value}) for value in (None, 2.0, 4.0)]
    assert medians(runs)[0]["ratio"] == 3.0


def test_figure_that_no_round_knows_is_unknown() -> None:
    assert medians([Run("dlctl", "1x8", {"ratio": None})])[0]["ratio"] is None


def test_series_is_that_of_the_last_round() -> None:
    runs = [Run("dlctl", "live", {"cpu": [1.0, 2.0]}), Run("dlctl", "live", {"cpu": [3.0004]})]
    assert medians(runs)[0]["cpu"] == [3.0]


def test_new_row_replaces_that_of_the_same_operator_and_scenario() -> None:
    old: list[Row] = [
        {"operator": "dlctl", "scenario": "a", "x": 1},
        {"operator": "peer", "scenario": "a"},
    ]
    new: list[Row] = [{"operator": "dlctl", "scenario": "a", "x": 2}]
    assert merge(old, new) == [new[0], old[1]]


def test_file_keeps_what_was_measured_before(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results.write(path, [{"operator": "dlctl", "scenario": "a"}])
    results.write(path, [{"operator": "dlctl", "scenario": "b"}])
    rows = json.loads(path.read_text())
    assert [row["scenario"] for row in rows] == ["a", "b"]
    assert all(row["measured"] and row["machine"] and "commit" in row for row in rows)
