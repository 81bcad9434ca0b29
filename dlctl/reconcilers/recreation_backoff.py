"""Slows down the creation of pods that others delete soon after it, as for a node's taint.

Such a deletion is no failure of the job, so none of its own back-offs applies.
"""

import datetime
from collections.abc import Iterable
from typing import Final

import attrs

from dlctl.api.meta import UID
from dlctl.backoff import Backoff
from dlctl.clock import Clock

BACKOFF: Final = Backoff(base_s=5.0, cap_s=120.0)
# A pod that is still there so long after its creation, or after the wait for the next one, starts
# a new series.
_LASTING_S: Final = 10.0


@attrs.frozen
class RecreationWait:
    """The wait for the next pod under a name."""

    left_s: float
    # How many pods of the series are gone, the last one included.
    deleted: int
    # When the first one of these was created.
    since: datetime.datetime


@attrs.frozen
class _Creation:
    at_s: float
    # How many pods of the series, under this name, were gone before.
    deleted: int
    # When the first pod of the series was created.
    since: datetime.datetime

    @property
    def next_at_s(self) -> float:
        """Return when the next pod may be created; the first one is replaced at once."""
        return self.at_s + BACKOFF.delay_s(self.deleted)

    def has_lasted(self, now_s: float) -> bool:
        return now_s > self.next_at_s + _LASTING_S


@attrs.define
class RecreationBackoff:
    """The pods that were created a moment ago, by the UID of their job and their name.

    Kept in memory: losing them costs another creation.
    """

    clock: Clock
    # The oldest first.
    _last: dict[tuple[UID, str], _Creation] = attrs.field(init=False, factory=dict)

    def record(self, job: UID, names: Iterable[str]) -> None:
        """Record the creation of pods of a job."""
        now_s, now = self.clock.monotonic(), self.clock.now()
        for name in names:
            last = self._last.pop((job, name), None)
            if last is None or last.has_lasted(now_s):
                self._last[job, name] = _Creation(now_s, 0, now)
            else:
                self._last[job, name] = _Creation(now_s, last.deleted + 1, last.since)

    def forget(self, job: UID, names: Iterable[str]) -> None:
        """Forget pods that dlctl itself deletes."""
        for name in names:
            self._last.pop((job, name), None)

    def waits(self, job: UID, names: Iterable[str]) -> dict[str, RecreationWait]:
        """Return the waits of those names whose next pods may not be created yet."""
        now_s = self.clock.monotonic()
        found = ((name, self._last.get((job, name))) for name in names)
        return {
            name: RecreationWait(last.next_at_s - now_s, last.deleted + 1, last.since)
            for name, last in found
            if last is not None and last.next_at_s > now_s
        }

    def forget_lasting(self) -> None:
        """Forget pods that were not gone soon, so that nothing is kept of jobs that run."""
        now_s = self.clock.monotonic()
        lasting = []
        for key, last in self._last.items():
            if not last.has_lasted(now_s):
                break
            lasting.append(key)
        for key in lasting:
            del self._last[key]
