"""Ratios are compared with their baseline, with a tolerance."""

import json

import pytest

from bench.cluster import gate
from bench.cluster.baseline import TOLERANCES, ratios, regressions

_BASELINE = {"1x200": {"children_ratio": 1.5, "writes_per_job": 404.0}}


def test_ratios_of_a_row_contain_the_processor_time_relative_to_the_reference() -> None:
    row = {
        "scenario": "1x200",
        "children_ratio": 1.5,
        "running_ratio": None,
        "cpu_ms_per_child": 0.8,
        "writes_per_job": 404,
        "rss_mb": 60,
    }
    assert ratios([row], reference_ms=4.0) == {
        "1x200": {
            "children_ratio": 1.5,
            "running_ratio": None,
            "cpu_per_child": 0.2,
            "writes_per_job": 404,
        }
    }


@pytest.mark.parametrize(
    ("children", "writes"),
    [
        pytest.param(1.5, 404.0, id="the same"),
        pytest.param(0.5, 300.0, id="better"),
        pytest.param(2.3, 460.0, id="within the tolerance"),
    ],
)
def test_ratio_within_its_tolerance_is_no_regression(children: float, writes: float) -> None:
    measured = {"1x200": {"children_ratio": children, "writes_per_job": writes}}
    assert list(regressions(measured, _BASELINE)) == []


def test_regression_says_what_became_worse() -> None:
    measured = {"1x200": {"children_ratio": 1.5, "writes_per_job": 604.0}}
    assert [str(one) for one in regressions(measured, _BASELINE)] == [
        "1x200: writes per job is 604.00, at most 505.00 is allowed (baseline 404.00)"
    ]


def test_unknown_ratio_is_a_regression() -> None:
    measured = {"1x200": {"children_ratio": None, "writes_per_job": 404.0}}
    (found,) = regressions(measured, _BASELINE)
    assert "unknown: the limit was exceeded" in str(found)


def test_scenario_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(KeyError):
        list(regressions({}, _BASELINE))


def test_stored_baseline_has_each_ratio_of_each_scenario() -> None:
    stored = json.loads(gate.BASELINE.read_text())
    assert list(stored) == list(gate.SCENARIOS)
    assert all(set(figures) == set(TOLERANCES) for figures in stored.values())


def test_reference_work_takes_time() -> None:
    assert gate.reference_ms() > 0
