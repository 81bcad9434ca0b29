"""Slows down the creation of pods that others delete soon after it, as for a node's taint.

Such a deletion is no failure of the job, so none of its own back-offs applies.
"""

from collections.abc import Iterable
from typing import Final

import attrs

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


@attrs.define
class RecreationBackoff:
    """The pods of one job that were created a moment ago, by name.

    Kept in memory: losing them costs another creation. Times are those of a monotonic clock.
    """

    _last: dict[str, _Creation] = attrs.field(init=False, factory=dict)

    def record(self, names: Iterable[str], now_s: float) -> None:
        """Record the creation of pods."""
        for name in names:
            # Placed at the end, so that the oldest are first.
            last = self._last.pop(name, None)
            is_series = last is not None and now_s <= last.next_at_s + _LASTING_S
            self._last[name] = _Creation(now_s, last.short_lived + 1 if last and is_series else 0)

    def forget(self, names: Iterable[str]) -> None:
        """Forget pods that dlctl itself deletes."""
        for name in names:
            self._last.pop(name, None)

    def left_s(self, name: str, now_s: float) -> float:
        """Return the seconds until a pod may be created; 0 if it may be now."""
        last = self._last.get(name)
        return 0.0 if last is None else max(last.next_at_s - now_s, 0.0)

    def forget_lasting(self, now_s: float) -> None:
        """Forget pods that were not gone soon: a job that runs has none here."""
        lasting = []
        for name, last in self._last.items():
            if now_s <= last.next_at_s + _LASTING_S:
                break
            lasting.append(name)
        self.forget(lasting)
