"""Applies changes to the store first, then notifies the handlers.

The reflector decides when to list and how to handle errors; nothing here waits for a server.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from dlctl.api.meta import Object, ObjectKey, Resource, WatchEventType
from dlctl.informers.handlers import Change, Handlers
from dlctl.informers.store import Store
from dlctl.informers.yield_budget import YieldBudget
from dlctl.kube.decoding import Malformed
from dlctl.metrics import Metrics

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
# Must not raise.
MalformedHandler = Callable[[Malformed], None]


class StoreSyncer(Generic[T]):
    """Applies lists and events to a store, then notifies the handlers of the differences.

    A handler that looks into the store finds the change it is notified of, or a later one. A
    malformed object leaves its last well-formed state in the store and is counted; it is logged,
    and passed to the malformed handlers, once until it is well-formed again.
    """

    def __init__(
        self, resource: Resource, store: Store[T], handlers: Handlers[T], metrics: Metrics
    ) -> None:
        self.synced = asyncio.Event()
        self._resource = resource
        self._store = store
        self._handlers = handlers
        self._malformed: dict[ObjectKey | None, Malformed] = {}
        self._malformed_handlers: list[MalformedHandler] = []
        labels = (resource.group_resource, resource.group, resource.version, resource.plural)
        self._malformed_count = metrics.informer_malformed_objects_total.labels(*labels)
        self._queued = metrics.informer_queued_items.labels(*labels)
        metrics.informer_store_resource_version.labels(*labels).set_function(
            lambda: version_number(store.resource_version)
        )

    async def replace(
        self, objects: Sequence[T], malformed: Sequence[Malformed], version: str
    ) -> None:
        """Replace the contents by a list in one step; notify of differences, deletions first."""
        fresh, initial = self._store.start_replacement(), not self.synced.is_set()
        fresh.resource_version = version
        changed: dict[ObjectKey, Change[T]] = {}
        budget = YieldBudget()
        for obj in objects:
            key, old = obj.metadata.key, self._store.get(obj.metadata.key)
            if old is not None and _identity(old) == _identity(obj):
                # The stored object may have been pruned; keep it.
                fresh.put(old)
                changed.pop(key, None)
            else:
                fresh.put(obj)
                changed[key] = Change(old, obj, initial)
            if budget.spend():
                await budget.renew()
        known, self._malformed = self._malformed, {}
        for each in malformed:
            self._report_malformed(each, known.get(each.key))
            if each.key and each.key not in fresh and (old := self._last_state(each)):
                fresh.put(old)
            if budget.spend():
                await budget.renew()
        gone = []
        for old in self._store:
            if old.metadata.key not in fresh:
                gone.append(Change(old, None))
            if budget.spend():
                await budget.renew()
        self._store.replace_contents(fresh)
        await self._notify_all([*gone, *changed.values()])
        self.synced.set()

    def _last_state(self, malformed: Malformed) -> T | None:
        """Return the stored state of an object; None if it was another one of the same name."""
        old = self._store.get(malformed.key) if malformed.key else None
        return None if old and malformed.uid and old.metadata.uid != malformed.uid else old

    async def _notify_all(self, changes: Sequence[Change[T]]) -> None:
        # A handler registered meanwhile is shown the store, which already contains these changes.
        handlers = self._handlers.registered
        budget = YieldBudget()
        for left, change in zip(range(len(changes), 0, -1), changes, strict=True):
            self._handlers.notify(change, handlers)
            if budget.spend():
                self._queued.set(left - 1)
                await budget.renew()
        self._queued.set(0)

    def apply(self, change: WatchEventType, obj: T) -> None:
        """Apply one event."""
        self._malformed.pop(obj.metadata.key, None)
        if change is WatchEventType.DELETED:
            self._store.remove(obj.metadata.key)
            # The event has the object's last state, which the store may never have had.
            self._handlers.notify(Change(obj, None))
        else:
            self._handlers.notify(Change(self._store.put(obj), obj))

    def apply_malformed(self, change: WatchEventType, obj: Malformed) -> None:
        """Apply an event of which only the key is known."""
        self._report_malformed(obj, self._malformed.get(obj.key))
        is_deleted = change is WatchEventType.DELETED
        if is_deleted:
            self._malformed.pop(obj.key, None)
        is_gone = is_deleted or self._last_state(obj) is None
        if is_gone and obj.key and (old := self._store.remove(obj.key)):
            self._handlers.notify(Change(old, None))

    def set_version(self, version: str) -> None:
        """Record that the store reflects this resource version."""
        self._store.resource_version = version

    def add_malformed_handler(self, handler: MalformedHandler) -> None:
        """Pass each malformed object to a function, starting with the existing ones."""
        for obj in self._malformed.values():
            handler(obj)
        self._malformed_handlers.append(handler)

    def _report_malformed(self, obj: Malformed, previous: Malformed | None) -> None:
        self._malformed_count.inc()
        self._malformed[obj.key] = obj
        if previous and previous.uid == obj.uid:
            return
        extra = {"resource": self._resource.group_resource, "key": str(obj.key), "error": obj.error}
        logger.warning("an object does not fit its projection", extra=extra)
        for handler in self._malformed_handlers:
            handler(obj)


def _identity(obj: Object) -> tuple[str, str]:
    return obj.metadata.uid, obj.metadata.resource_version


def version_number(version: str) -> float:
    """Return the last 15 digits of a resource version: as much as a gauge can hold."""
    digits = version[-15:]
    return float(digits) if digits.isdecimal() else 0.0
