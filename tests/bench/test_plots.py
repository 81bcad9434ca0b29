"""Plots of results."""

import json
from pathlib import Path
from xml.etree import ElementTree

from bench.plots import plots
from bench.svg import Series, bars, lines

_ROOT = Path(__file__).parents[2]


def _texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_bar_shows_its_value_and_an_unknown_one_none() -> None:
    svg = bars("title", ["1 x 8"], [Series("a", [1.5]), Series("b", [None])], mark=1.0)
    assert _texts(svg) == ["title", "a", "b", "1 x 8", "1.50"]


def test_line_has_a_point_for_each_value_on_an_axis_that_is_labelled() -> None:
    svg = lines("title", "jobs", [10, 100], [Series("<a>", [1.0, 3.0])], log_x=True)
    assert _texts(svg) == ["title", "<a>", "0", "2.5", "5", "10", "100", "jobs"]
    assert svg.count("<circle") == 2


def test_long_series_has_few_labels() -> None:
    values = [float(number) for number in range(61)]
    assert len(_texts(lines("title", "s", values, [Series("a", values)]))) == 2 + 3 + 6 + 1


def test_scenario_without_figures_has_no_plot() -> None:
    assert plots([]) == {}
    rows = [{"operator": "dlctl", "scenario": "1x8", "children_ratio": 1.0, "running_ratio": 2.0}]
    assert list(plots(rows)) == ["creation.svg"]


def test_bars_are_ordered_by_jobs_and_replicas_and_then_by_name() -> None:
    # Several of one size, which a set of strings orders otherwise in each process.
    variants = [f"{name}:1x1000" for name in "abcdefgh"]
    rows = [
        {"operator": "dlctl", "scenario": scenario, "children_ratio": 1.0, "running_ratio": 2.0}
        for scenario in ("200x4", *variants, "1x1000", "1x5000")
    ]
    texts = _texts(plots(rows)["creation.svg"])
    labels = [text for text in texts if " x " in text and text[-1].isdigit()]
    assert labels == [
        "1 x 1000",
        *(f"{name}:1 x 1000" for name in "abcdefgh"),
        "1 x 5000",
        "200 x 4",
    ]


def test_plots_of_the_page_are_those_of_the_results() -> None:
    found = plots(json.loads((_ROOT / "bench/results.json").read_text()))
    folder = _ROOT / "docs/performance"
    assert {path.name: path.read_text() for path in folder.iterdir()} == found
