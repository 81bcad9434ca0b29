"""Scenarios as the user spells them."""

import attrs
import pytest

from bench.cluster.scenarios import parse_scenario
from bench.cluster.scenarios.creation import Creation, OneService
from bench.cluster.scenarios.fairness import Fairness
from bench.cluster.scenarios.first_write import FirstWrite
from bench.cluster.scenarios.floor import Floor
from bench.cluster.scenarios.live_jobs import levels
from bench.cluster.scenarios.restart import Restart


@pytest.mark.parametrize(
    ("text", "full", "scenario"),
    [
        pytest.param("200x4", "200x4", Creation(200, 4), id="jobs and replicas"),
        pytest.param(
            "one-service:1x1000", "one-service:1x1000", OneService(1, 1000), id="one service"
        ),
        pytest.param("create:200x4", "200x4", Creation(200, 4), id="the same by its name"),
        pytest.param("restart:100x10", "restart:100x10", Restart(100, 10), id="all sizes"),
        pytest.param("fairness:300", "fairness:300x4", Fairness(300, 4), id="the first size"),
        pytest.param("fairness", "fairness:5000x4", Fairness(5000, 4), id="no size"),
        pytest.param("floor", "floor:1x1000", Floor(1, 1000), id="two sizes left out"),
        pytest.param("first-write", "first-write", FirstWrite(), id="one without sizes"),
    ],
)
def test_scenario_is_spelt_by_name_and_sizes(text: str, full: str, scenario: object) -> None:
    name, found = parse_scenario(text)
    assert name == full
    assert found == scenario
    assert attrs.has(type(found))


def test_unknown_scenario_is_rejected() -> None:
    with pytest.raises(ValueError, match="fairnes is none of create, fairness"):
        parse_scenario("fairnes:300")


def test_levels_of_live_jobs_end_with_the_highest() -> None:
    assert levels(10) == [10]
    assert levels(1000) == [10, 100, 1000]
    assert levels(1500) == [10, 100, 1000, 1500]
