"""The wait before the next pod after failed ones: 10 s, doubled for each further one, to 10 min.

Kept in memory only: after a restart the next pod is created at once. Pure.
"""

import datetime
from collections.abc import Sequence
from typing import Final, Self

import attrs

from dlctl.backoff import Backoff
from dlctl.local.job_controller.pod_state import finished_at
from dlctl.local.node.api_types import NodePod

BACKOFF: Final = Backoff(base_s=10.0, cap_s=600.0)


@attrs.frozen
class FailureRecord:
    """The failures of a job's pods since one of them last succeeded."""

    count: int = 0
    last: datetime.datetime | None = None

    def after(self, succeeded: Sequence[NodePod], failed: Sequence[NodePod]) -> Self:
        """Return the record after more pods have ended."""
        failures = [finished_at(pod) for pod in failed]
        if not succeeded:
            count = self.count + len(failures)
            return type(self)(count, max(failures) if failures else self.last)
        success = max(finished_at(pod) for pod in succeeded)
        later = [time for time in failures if time > success]
        return type(self)(len(later), max(later, default=None))

    def remaining_s(self, now: datetime.datetime) -> float:
        """Return how long to wait before the next pod."""
        if self.last is None:
            return 0.0
        return max(BACKOFF.delay_s(self.count) - (now - self.last).total_seconds(), 0.0)


NO_FAILURES: Final = FailureRecord()
