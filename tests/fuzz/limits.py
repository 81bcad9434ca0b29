"""How much is tried, with which seed, and what it may cost; settings by the environment.

``FUZZ_SEED`` is the commit's by default, so a change is tried with other objects than the last one,
and trying it again tries the same. ``FUZZ_BUDGET_S`` is the time for all objects taken together.
"""

import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Final

import attrs

OBJECTS: Final = int(os.environ.get("FUZZ_OBJECTS", "20000"))
STORED: Final = int(os.environ.get("FUZZ_STORED", "300"))
BUDGET_S: Final = float(os.environ.get("FUZZ_BUDGET_S", "600"))
# Of one object.
MAX_TIME_S: Final = 0.05
MAX_MEMORY_BYTES: Final = 4 << 20
# Of a job whose plan is made in a thread: it may have 10,000 replicas.
LARGE_MAX_TIME_S: Final = 1.0
LARGE_MAX_MEMORY_BYTES: Final = 64 << 20
# Measuring memory takes several times as long as the rest: one of so many is measured.
MEASURE_EVERY: Final = 10
# These all are.
ALWAYS_MEASURED_BYTES: Final = 50_000


def seed() -> int:
    """Return what all that is drawn follows from."""
    given = os.environ.get("FUZZ_SEED")
    return int(given, 0) if given else int(_commit()[:8], 16)


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=False)
    # Without a repository, as in a tarball, one seed is as good as another.
    return found.stdout.decode().strip() or "0" * 40


SEED: Final = seed()


@attrs.define
class FuzzReport:
    """What has been tried of one form: counts by outcome, the slowest and the largest."""

    budget_s: float
    started: float = attrs.field(factory=time.monotonic)
    outcomes: Counter[str] = attrs.field(factory=Counter)
    slowest_s: float = 0.0
    largest_bytes: int = 0
    failed: bool = False

    @property
    def is_over_budget(self) -> bool:
        return time.monotonic() - self.started > self.budget_s

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {what}" for what, count in sorted(self.outcomes.items()))
        return (
            f"{self.outcomes.total()} objects: {outcomes}; at most "
            f"{self.slowest_s * 1000:.1f} ms, {self.largest_bytes / (1 << 20):.1f} MB"
        )
