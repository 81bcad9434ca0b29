"""Notify handlers of changes; an error in one does not affect the others.

Handlers are plain functions that map an object to keys and enqueue them: a store update and its
consequences happen without yielding to the event loop. Only the objects that exist before a handler
are shown to it a batch at a time.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import attrs

from dlctl.api.meta import Object, ObjectKey, Resource
from dlctl.informers.yield_budget import YieldBudget
from dlctl.metrics import Metrics

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)


@attrs.frozen
class Change(Generic[T_co]):
    """One object before and after a change.

    Without ``old`` it was created; without ``new`` it was deleted, and ``old`` may be stale if the
    deletion itself was missed. Two different UIDs mean a deletion and a creation under the same
    name. ``initial`` marks objects that existed before the watch.
    """

    old: T_co | None
    new: T_co | None
    initial: bool = False

    @property
    def key(self) -> ObjectKey:
        obj = self.new or self.old
        if obj is None:
            raise ValueError("expected an old or a new object")
        return obj.metadata.key


ResourceEventHandler = Callable[[Change[T]], None]


@attrs.define(eq=False)
class Registration(Generic[T]):
    """A handler, and what it has not been shown yet: objects older than itself, then changes."""

    handler: ResourceEventHandler[T]
    existing: deque[T]
    pending: deque[Change[T]] = attrs.field(init=False, factory=deque)

    @property
    def is_behind(self) -> bool:
        return bool(self.existing or self.pending)

    def next(self) -> Change[T]:
        if self.existing:
            return Change(None, self.existing.popleft(), initial=True)
        return self.pending.popleft()


class Handlers(Generic[T]):
    """The handlers of one resource, notified in order of registration.

    Changes wait behind the objects that existed before a handler until it has been shown these.
    """

    def __init__(self, resource: Resource, metrics: Metrics) -> None:
        # Replaced, never changed: a series of changes keeps those that existed when it began.
        self.registered: tuple[Registration[T], ...] = ()
        # Set while no handler is behind.
        self.caught_up = asyncio.Event()
        self.caught_up.set()
        labels = (resource.group_resource, resource.group, resource.version, resource.plural)
        self._resource = resource
        self._errors = metrics.informer_handler_errors_total.labels(*labels)
        self._latency = metrics.informer_processing_latency_seconds.labels(*labels)

    def add(self, handler: ResourceEventHandler[T], existing: Iterable[T]) -> None:
        """Register a handler and show it the existing objects: a batch now, the others later."""
        registration = Registration(handler, deque(existing))
        self.registered = (*self.registered, registration)
        self._catch_up(registration)

    def stop_replays(self) -> None:
        """Show no handler what it has not seen yet."""
        for registration in self.registered:
            registration.existing.clear()
            registration.pending.clear()
        self.caught_up.set()

    def _catch_up(self, registration: Registration[T]) -> None:
        budget = YieldBudget()
        while registration.is_behind:
            self._call(registration.handler, registration.next())
            if budget.spend():
                break
        if registration.is_behind:
            self.caught_up.clear()
            # Not at once: a full store takes seconds, after which the elector would give up.
            asyncio.get_running_loop().call_soon(self._catch_up, registration)
        elif not any(one.is_behind for one in self.registered):
            self.caught_up.set()

    def notify(self, change: Change[T], handlers: Iterable[Registration[T]] | None = None) -> None:
        """Notify all handlers, or only those that existed when a series of changes began."""
        started = time.perf_counter()
        for registration in self.registered if handlers is None else handlers:
            if registration.is_behind:
                registration.pending.append(change)
            else:
                self._call(registration.handler, change)
        self._latency.observe(time.perf_counter() - started)

    def _call(self, handler: ResourceEventHandler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            self._errors.inc()
            extra = {"resource": self._resource.group_resource, "key": str(change.key)}
            logger.exception("a handler failed on a change", extra=extra)
