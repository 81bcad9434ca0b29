"""What has been tried of one form, within its part of the budget."""

import time
from collections import Counter

import attrs

from tests.fuzz.costs import Cost


@attrs.define
class FuzzReport:
    """Statistics of one form: counts by outcome, the slowest and the largest object."""

    budget_s: float
    started: float = attrs.field(factory=time.monotonic)
    outcomes: Counter[str] = attrs.field(factory=Counter)
    slowest_s: float = 0.0
    largest_bytes: int = 0
    # Failed inputs: they fail again whenever they are tried.
    failed: set[bytes] = attrs.field(factory=set)

    @property
    def is_over_budget(self) -> bool:
        return time.monotonic() - self.started > self.budget_s

    def add(self, cost: Cost, *, in_loop: bool) -> None:
        self.outcomes[cost.outcome] += 1
        if in_loop:
            self.slowest_s = max(self.slowest_s, cost.time_s)
            self.largest_bytes = max(self.largest_bytes, cost.peak_bytes)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {what}" for what, count in sorted(self.outcomes.items()))
        return (
            f"{self.outcomes.total()} objects: {outcomes}; at most "
            f"{self.slowest_s * 1000:.1f} ms, {self.largest_bytes / (1 << 20):.1f} MB"
        )
