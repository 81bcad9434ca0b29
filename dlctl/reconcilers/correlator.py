"""Which occurrences become events, and which only raise the count of one: pure, no I/O.

Three steps, in this order: many similar messages become one combined event, the same one again
becomes a higher count, and an object that goes on and on is heard less often. Bug-compatible with
https://github.com/kubernetes/client-go/blob/master/tools/record/events_cache.go
"""

import datetime
import hashlib
import secrets
from typing import Final, Self

import attrs
from cachetools import LRUCache

from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.clock import Clock

# So many different messages with one reason, none more than this apart, are told as one.
SIMILAR: Final = 10
SIMILAR_WITHIN_S: Final = 600.0
COMBINED: Final = "(combined from similar events): "
# Per object and type: a burst, and then one event every five minutes.
BURST: Final = 25
REFILL_S: Final = 300.0
# What is forgotten first is what was seen longest ago.
CACHED: Final = 4096


@attrs.frozen
class Regarding:
    """The object that an event is about."""

    resource: Resource
    key: ObjectKey
    uid: UID


@attrs.frozen
class Occurrence:
    """Something that happened to an object; it happens again if all of it is equal."""

    regarding: Regarding
    type: str
    reason: str
    message: str
    # Who tells, if not the one who always does.
    source: str = ""


@attrs.frozen
class Report:
    """An event as the server should hold it: new if the count is one, changed if it is more."""

    occurrence: Occurrence
    name: str
    count: int
    first: datetime.datetime
    last: datetime.datetime


@attrs.frozen
class _Same:
    """What an occurrence is known by: a digest, which takes as much memory for any message."""

    regarding: Regarding
    type: str
    reason: str
    source: str
    message: bytes

    @classmethod
    def of(cls, occurrence: Occurrence) -> Self:
        regarding, source = occurrence.regarding, occurrence.source
        message = _digest(occurrence.message)
        return cls(regarding, occurrence.type, occurrence.reason, source, message)


@attrs.frozen
class _Known:
    name: str
    count: int
    first: datetime.datetime


@attrs.define
class _Similar:
    last_s: float
    messages: set[bytes] = attrs.field(factory=set)


@attrs.define
class _Bucket:
    tokens: float
    filled_s: float


class Correlator:
    """The recent occurrences of one source, and what was made of them.

    Memory is bounded, in bytes too: no message is kept.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._similar: LRUCache[tuple[Regarding, str, str], _Similar] = LRUCache(CACHED)
        self._known: LRUCache[_Same, _Known] = LRUCache(CACHED)
        self._buckets: LRUCache[tuple[Regarding, str], _Bucket] = LRUCache(CACHED)

    def report(self, occurrence: Occurrence) -> Report | None:
        """Return what to tell the server, or None if it has heard enough of the object."""
        same, shown = self._combined(occurrence)
        report = self._counted(same, shown)
        return report if self._allowed(occurrence) else None

    def _combined(self, occurrence: Occurrence) -> tuple[Occurrence, Occurrence]:
        """Return what the occurrence counts as, and how it is told."""
        key = (occurrence.regarding, occurrence.type, occurrence.reason)
        now_s = self._clock.monotonic()
        similar = self._similar.get(key)
        if similar is None or now_s - similar.last_s > SIMILAR_WITHIN_S:
            similar = self._similar[key] = _Similar(now_s)
        similar.last_s = now_s
        similar.messages.add(_digest(occurrence.message))
        if len(similar.messages) < SIMILAR:
            return occurrence, occurrence
        # Any one goes: only how many different ones there are matters from here on.
        similar.messages.pop()
        shown = attrs.evolve(occurrence, message=COMBINED + occurrence.message)
        return attrs.evolve(occurrence, message=COMBINED), shown

    def _counted(self, same: Occurrence, shown: Occurrence) -> Report:
        now = self._clock.now()
        key = _Same.of(same)
        before = self._known.get(key)
        if before is None:
            name = f"{shown.regarding.key.name}.{secrets.token_hex(8)}"
            known = _Known(name, 1, now)
        else:
            known = attrs.evolve(before, count=before.count + 1)
        self._known[key] = known
        return Report(shown, known.name, known.count, known.first, now)

    def _allowed(self, occurrence: Occurrence) -> bool:
        key = (occurrence.regarding, occurrence.type)
        now_s = self._clock.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(float(BURST), now_s)
        refill = (now_s - bucket.filled_s) / REFILL_S
        bucket.tokens = min(float(BURST), bucket.tokens + refill)
        bucket.filled_s = now_s
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _digest(message: str) -> bytes:
    # Of what users write, some cannot be encoded strictly.
    return hashlib.blake2b(message.encode(errors="replace"), digest_size=16).digest()
