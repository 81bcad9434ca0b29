"""Correlate events: which become new ones, and which only raise a count. Pure, no I/O.

Three steps in this order: many similar messages are aggregated into one, a repeated event raises a
count, and a busy object is rate-limited. Bug-compatible with
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
from dlctl.token_bucket import TokenBucket

# This many different messages with one reason, at most this far apart, become one.
AGGREGATE_MAX_EVENTS: Final = 10
AGGREGATE_INTERVAL_S: Final = 600.0
AGGREGATE_PREFIX: Final = "(combined from similar events): "
# Per object and type: a burst, then one event every five minutes.
SPAM_BURST: Final = 25
SPAM_REFILL_S: Final = 300.0
# The least recently used entry is dropped first.
LRU_CACHE_SIZE: Final = 4096
_MAX_NAME_CHARS: Final = 253


@attrs.frozen
class ObjectReference:
    """The object that an event is about."""

    resource: Resource
    key: ObjectKey
    uid: UID


@attrs.frozen
class Event:
    """Something that happened to an object; equal events are repetitions."""

    regarding: ObjectReference
    type: str
    reason: str
    message: str
    # The reporting component, if not the recorder's.
    source: str = ""


@attrs.frozen
class CorrelatedEvent:
    """An event for the server: to create if the count is one, to patch if it is higher."""

    event: Event
    name: str
    count: int
    first_timestamp: datetime.datetime
    last_timestamp: datetime.datetime


@attrs.frozen
class _EventKey:
    """The identity of an event: a digest, whose size does not depend on the message."""

    regarding: ObjectReference
    type: str
    reason: str
    source: str
    message: bytes

    @classmethod
    def of(cls, event: Event) -> Self:
        regarding, source = event.regarding, event.source
        message = _digest(event.message)
        return cls(regarding, event.type, event.reason, source, message)


@attrs.frozen
class _EventLog:
    name: str
    count: int
    first_timestamp: datetime.datetime


@attrs.define
class _AggregateRecord:
    last_seen_s: float
    messages: set[bytes] = attrs.field(factory=set)


class EventCorrelator:
    """The recent events of one source, and what became of them.

    Memory is bounded in bytes as well: no message is kept.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._aggregates: LRUCache[tuple[ObjectReference, str, str], _AggregateRecord] = LRUCache(
            LRU_CACHE_SIZE
        )
        self._logs: LRUCache[_EventKey, _EventLog] = LRUCache(LRU_CACHE_SIZE)
        self._buckets: LRUCache[tuple[ObjectReference, str], TokenBucket] = LRUCache(LRU_CACHE_SIZE)

    def correlate(self, event: Event) -> CorrelatedEvent | None:
        """Return the event to send, or None if the object is over its rate limit."""
        counted_as, shown = self._aggregate(event)
        correlated = self._observe(counted_as, shown)
        return correlated if self._passes_spam_filter(event) else None

    def _aggregate(self, event: Event) -> tuple[Event, Event]:
        """Return the event to count, and the event to show."""
        key = (event.regarding, event.type, event.reason)
        now_s = self._clock.monotonic()
        aggregate = self._aggregates.get(key)
        if aggregate is None or now_s - aggregate.last_seen_s > AGGREGATE_INTERVAL_S:
            aggregate = self._aggregates[key] = _AggregateRecord(now_s)
        aggregate.last_seen_s = now_s
        aggregate.messages.add(_digest(event.message))
        if len(aggregate.messages) < AGGREGATE_MAX_EVENTS:
            return event, event
        # Any one will do: from here on, only the number of different messages matters.
        aggregate.messages.pop()
        shown = attrs.evolve(event, message=AGGREGATE_PREFIX + event.message)
        return attrs.evolve(event, message=AGGREGATE_PREFIX), shown

    def _observe(self, counted_as: Event, shown: Event) -> CorrelatedEvent:
        now = self._clock.now()
        key = _EventKey.of(counted_as)
        before = self._logs.get(key)
        if before is None:
            log = _EventLog(event_name(shown.regarding.key.name), 1, now)
        else:
            log = attrs.evolve(before, count=before.count + 1)
        self._logs[key] = log
        return CorrelatedEvent(shown, log.name, log.count, log.first_timestamp, now)

    def _passes_spam_filter(self, event: Event) -> bool:
        key = (event.regarding, event.type)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(SPAM_REFILL_S, SPAM_BURST)
        return bucket.try_take(self._clock.monotonic())


def event_name(regarding: str) -> str:
    """Return a new name for an event: the object's name, if need be cut, and a random suffix."""
    suffix = f".{secrets.token_hex(8)}"
    # Of a DNS subdomain, each label ends in a letter or a digit.
    return regarding[: _MAX_NAME_CHARS - len(suffix)].rstrip("-.") + suffix


def _digest(message: str) -> bytes:
    # Text written by users may not be encodable strictly.
    return hashlib.blake2b(message.encode(errors="replace"), digest_size=16).digest()
