"""Ratios of a run compared with those of an earlier one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

Row = Mapping[str, Any]
# How far each ratio may be above its baseline. Times vary on a busy machine, counts do not.
TOLERANCES: Final[Mapping[str, float]] = {
    "children_ratio": 2.5,
    "running_ratio": 2.5,
    "cpu_per_child": 2.5,
    "writes_per_job": 1.25,
}
_MEANINGS: Final[Mapping[str, str]] = {
    "children_ratio": "the time until all children exist, relative to plain writers",
    "running_ratio": "the time until all jobs run, relative to plain writers",
    "cpu_per_child": "processor time per child, relative to reference work",
    "writes_per_job": "writes per job",
}


@attrs.frozen
class Regression:
    """A ratio that is worse than its baseline allows."""

    scenario: str
    figure: str
    value: float | None
    baseline: float

    def __str__(self) -> str:
        value = "unknown: the limit was exceeded" if self.value is None else f"{self.value:.2f}"
        allowed = self.baseline * TOLERANCES[self.figure]
        return (
            f"{self.scenario}: {_MEANINGS[self.figure]} is {value}, "
            f"at most {allowed:.2f} is allowed (baseline {self.baseline:.2f})"
        )


def ratios(rows: Sequence[Row], reference_ms: float) -> dict[str, dict[str, float | None]]:
    """Return the ratios of each scenario; ``reference_ms`` is what the reference work took."""
    found = {}
    for row in rows:
        cpu_per_child = row["cpu_ms_per_child"] / reference_ms
        of_row = {**row, "cpu_per_child": round(cpu_per_child, 3)}
        found[str(row["scenario"])] = {figure: of_row[figure] for figure in TOLERANCES}
    return found


def regressions(
    measured: Mapping[str, Mapping[str, float | None]],
    baseline: Mapping[str, Mapping[str, float]],
) -> Iterator[Regression]:
    """Yield what is worse than the baseline allows.

    :raises KeyError: if a scenario of the baseline was not measured.
    """
    for scenario, stored in baseline.items():
        for figure, old in stored.items():
            value = measured[scenario][figure]
            if value is None or value > old * TOLERANCES[figure]:
                yield Regression(scenario, figure, value, old)
