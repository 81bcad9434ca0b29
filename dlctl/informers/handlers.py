"""Notify handlers of changes; an error in one does not affect the others.

Handlers are plain functions that map an object to keys and enqueue them: a store update and its
consequences happen without yielding to the event loop.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import attrs

from dlctl.api.meta import Object, ObjectKey, Resource
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


class Handlers(Generic[T]):
    """The handlers of one resource, notified in order of registration."""

    def __init__(self, resource: Resource, metrics: Metrics) -> None:
        # Replaced, never changed: a series of changes keeps those that existed when it began.
        self.registered: tuple[ResourceEventHandler[T], ...] = ()
        labels = (resource.group_resource, resource.group, resource.version, resource.plural)
        self._resource = resource
        self._errors = metrics.informer_handler_errors_total.labels(*labels)
        self._latency = metrics.informer_processing_latency_seconds.labels(*labels)

    def add(self, handler: ResourceEventHandler[T], replay: Iterable[T]) -> None:
        """Register a handler after showing it the existing objects."""
        for obj in replay:
            self._call(handler, Change(None, obj, initial=True))
        self.registered = (*self.registered, handler)

    def notify(
        self, change: Change[T], handlers: Iterable[ResourceEventHandler[T]] | None = None
    ) -> None:
        """Notify all handlers, or only those that existed when a series of changes began."""
        started = time.perf_counter()
        for handler in self.registered if handlers is None else handlers:
            self._call(handler, change)
        self._latency.observe(time.perf_counter() - started)

    def _call(self, handler: ResourceEventHandler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            self._errors.inc()
            extra = {"resource": self._resource.group_resource, "key": str(change.key)}
            logger.exception("a handler failed on a change", extra=extra)
