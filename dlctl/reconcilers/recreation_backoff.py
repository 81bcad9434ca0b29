"""Slows down the creation of children that are deleted soon after it, again and again.

Such a deletion is no failure of the job, so none of its own back-offs applies. It may be by others,
as for a node's taint, or because others change what dlctl has created, so that it is outdated.
Updates that others undo are slowed down likewise: named by the UID of their object, with what they
change.
"""

import datetime
import itertools
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Final

import attrs

from dlctl.api.meta import UID, Resource
from dlctl.backoff import Backoff
from dlctl.clock import Clock

BACKOFF: Final = Backoff(base_s=5.0, cap_s=120.0)
# A child that is still there so long after its creation, or after the wait for the next one, starts
# a new series.
_LASTING_S: Final = 10.0


@attrs.frozen
class RecreationWait:
    """The wait for the next child under a name."""

    left_s: float
    # How many children of the series are gone, the last one included.
    deleted: int
    # When the first one of these was created.
    since: datetime.datetime


@attrs.frozen
class _Creation:
    at_s: float
    # How many children of the series, under this name, were gone before.
    deleted: int
    # When the first child of the series was created.
    since: datetime.datetime
    # Of an update: another one is no repetition.
    content: str

    @property
    def next_at_s(self) -> float:
        """Return when the next child may be created; the first one is replaced at once."""
        return self.at_s + BACKOFF.delay_s(self.deleted)

    def has_lasted(self, now_s: float) -> bool:
        return now_s > self.next_at_s + _LASTING_S


@attrs.define
class RecreationBackoff:
    """The children that were created a moment ago, by resource, the UID of their job, and name.

    Kept in memory: losing them costs another creation.
    """

    clock: Clock
    # The oldest of each resource first.
    _last: defaultdict[Resource, dict[tuple[UID, str], _Creation]] = attrs.field(
        init=False, factory=partial(defaultdict, dict)
    )

    def record(self, job: UID, resource: Resource, names: Iterable[str], content: str = "") -> None:
        """Record the creation, or an update with this content, of children of a job."""
        now_s, now, known = self.clock.monotonic(), self.clock.now(), self._last[resource]
        for name in names:
            last = known.pop((job, name), None)
            if last is None or last.content != content or last.has_lasted(now_s):
                known[job, name] = _Creation(now_s, 0, now, content)
            else:
                known[job, name] = _Creation(now_s, last.deleted + 1, last.since, content)

    def forget(self, job: UID, resource: Resource, names: Iterable[str]) -> None:
        """Forget children that are no longer wanted, so that dlctl itself deletes them."""
        for name in names:
            self._last[resource].pop((job, name), None)

    def forget_all(self, job: UID, resource: Resource) -> None:
        """Forget all children of a job."""
        known = self._last[resource]
        for key in [key for key in known if key[0] == job]:
            del known[key]

    def waits(
        self, job: UID, missing: Iterable[tuple[Resource, str]], content: str = ""
    ) -> dict[tuple[Resource, str], RecreationWait]:
        """Return the waits of those children that may not be created, or updated so, yet."""
        if not any(self._last.values()):
            return {}
        now_s = self.clock.monotonic()
        found = ((child, self._last[child[0]].get((job, child[1]))) for child in missing)
        return {
            child: RecreationWait(last.next_at_s - now_s, last.deleted + 1, last.since)
            for child, last in found
            if last is not None and last.content == content and last.next_at_s > now_s
        }

    def forget_lasting(self) -> None:
        """Forget children that were not gone soon, so that nothing is kept of jobs that run."""
        now_s = self.clock.monotonic()
        for known in self._last.values():
            in_order = known.items()
            lasting = itertools.takewhile(lambda item: item[1].has_lasted(now_s), in_order)
            for key, _ in list(lasting):
                del known[key]
