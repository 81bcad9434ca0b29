"""After how many results the outcome of a probe changes."""

import pytest

from dlctl.local.node.containers.probes import ProbeOutcome
from dlctl.local.node.handler_types import Probe


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("...", [None, None, False]),
        ("..+.", [None, None, None, None]),
        ("++", [None, True]),
        ("+.++", [None, None, None, True]),
        ("....", [None, None, False, False]),
    ],
)
def test_outcome_needs_equal_results_in_a_row(results: str, expected: list[bool | None]) -> None:
    outcome = ProbeOutcome(Probe(success_threshold=2, failure_threshold=3))
    assert [outcome.record(succeeded=result == "+") for result in results] == expected
