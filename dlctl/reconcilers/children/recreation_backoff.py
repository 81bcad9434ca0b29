"""Slows down the creation of pods that others delete soon after it, as for a node's taint.

Such a deletion is no failure of the job, so none of its own back-offs applies.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from dlctl.api.meta import UID
from dlctl.backoff import Backoff

BACKOFF: Final = Backoff(base_s=5.0, cap_s=120.0)
# A pod that is still there so long after its creation, or after the wait for the next one, starts
# a new series.
_LASTING_S: Final = 10.0


@attrs.frozen
class _Creation:
    at_s: float
    # How many pods under this name, in a row, were gone soon after their creation.
    short_lived: int

    @property
    def next_at_s(self) -> float:
        """Return when the next pod may be created; the first one is replaced at once."""
        return self.at_s + BACKOFF.delay_s(self.short_lived)

    def has_lasted(self, now_s: float) -> bool:
        return now_s > self.next_at_s + _LASTING_S


@attrs.define
class RecreationBackoff:
    """The pods that were created a moment ago, by the UID of their job and their name.

    Kept in memory: losing them costs another creation. Times are those of a monotonic clock.
    """

    # The oldest first.
    _last: dict[tuple[UID, str], _Creation] = attrs.field(init=False, factory=dict)

    def record(self, job: UID, names: Iterable[str], now_s: float) -> None:
        """Record the creation of pods of a job."""
        for name in names:
            last = self._last.pop((job, name), None)
            is_series = last is not None and not last.has_lasted(now_s)
            short_lived = last.short_lived + 1 if last and is_series else 0
            self._last[job, name] = _Creation(now_s, short_lived)

    def forget(self, job: UID, names: Iterable[str]) -> None:
        """Forget pods that dlctl itself deletes."""
        for name in names:
            self._last.pop((job, name), None)

    def left_s(self, job: UID, name: str, now_s: float) -> float:
        """Return the seconds until a pod may be created; 0 if it may be now."""
        last = self._last.get((job, name))
        return 0.0 if last is None else max(last.next_at_s - now_s, 0.0)

    def forget_lasting(self, now_s: float) -> None:
        """Forget pods that were not gone soon, so that nothing is kept of jobs that run."""
        lasting = []
        for key, last in self._last.items():
            if not last.has_lasted(now_s):
                break
            lasting.append(key)
        for key in lasting:
            del self._last[key]
