"""The objects, their revisions and recent history: the part of etcd and its cache.

One revision counter for all. Every method is synchronous: without an await between a read and a
write, no other write can intervene. ``objects`` decides what may be written.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from dlctl.api.meta import ObjectKey, Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.storage.stored_objects import (
    StorageEvent,
    StoredObject,
    TableName,
    table_of,
)

# One revision per write: a job of 1,000 pods makes about 6,000.
WINDOW = 20_000


def sort_key(key: ObjectKey) -> str:
    # The order of etcd's keys, in which lists are sorted and continued.
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


@attrs.define
class _Table:
    objects: dict[str, StoredObject] = attrs.field(factory=dict)
    # Invariant: the sorted keys of ``objects``.
    order: list[str] = attrs.field(factory=list)
    history: deque[StorageEvent] = attrs.field(factory=deque)
    watchers: list["Watcher"] = attrs.field(factory=list)


@attrs.define(eq=False)
class Watcher:
    """The changes of one table since a revision, in order, until it is closed."""

    changes: deque[StorageEvent]
    # Called whenever ``changes`` becomes non-empty.
    wake: Callable[[], None]
    # With more pending changes than this, the watch is dropped; its client can start again.
    limit: int
    overflowed: bool = False
    # The resource has changed or is served no more; changes before that are still to be sent.
    ended: bool = False

    def add(self, change: StorageEvent) -> None:
        if self.overflowed:
            return
        if not self.changes:
            self.wake()
        self.changes.append(change)
        if len(self.changes) > self.limit:
            self.overflowed = True
            self.changes.clear()

    def drain(self) -> list[StorageEvent]:
        taken = list(self.changes)
        self.changes.clear()
        return taken


class Storage:
    """All objects of the cluster, with a window of history before the current revision.

    Observers are plain functions that are called after each write, in order; their own writes get
    later revisions.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.revision = 1
        # History up to this revision is gone, except for current objects.
        self.compacted = 0
        self.observers: list[Callable[[StorageEvent], None]] = []
        # Called before each write; if it raises, nothing is written.
        self.persist: Callable[[StorageEvent], None] = lambda _: None
        self._window = window
        self._tables: dict[TableName, _Table] = {}
        # One entry per change in the history of any table, in order.
        self._changed_tables: deque[_Table] = deque()
        self._pending_events: deque[StorageEvent] = deque()

    def _table(self, resource: Resource | TableName) -> _Table:
        name = table_of(resource) if isinstance(resource, Resource) else resource
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = _Table()
        return table

    def get(self, resource: Resource, key: ObjectKey) -> StoredObject | None:
        return self._table(resource).objects.get(sort_key(key))

    def objects(self, resource: Resource, namespace: str = "") -> list[StoredObject]:
        """Return the current objects, sorted by namespace and name."""
        table = self._table(resource)
        return [table.objects[key] for key in _within(table.order, namespace)]

    def objects_at(self, resource: Resource, namespace: str, revision: int) -> list[StoredObject]:
        """Return the objects as of a revision; raise Expired if it is too old."""
        if revision >= self.revision:
            return self.objects(resource, namespace)
        table = self._table(resource)
        if revision < self.compacted:
            raise status.expired("The resourceVersion for the provided list is too old.")
        past: dict[str, StoredObject | None] = {}
        for change in reversed(table.history):
            if change.revision <= revision:
                break
            past[sort_key(change.key)] = change.old
        objects = {key: stored for key, stored in (table.objects | past).items() if stored}
        return [objects[key] for key in _within(sorted(objects), namespace)]

    def create(self, resource: Resource, obj: Mapping[str, Any]) -> StoredObject:
        """Store a new object; raise AlreadyExists if the name is taken."""
        stored = StoredObject.of(obj, self.revision + 1)
        table = self._table(resource)
        at = sort_key(stored.key)
        if at in table.objects:
            raise status.already_exists(resource, stored.key.name)
        self._commit(StorageEvent(table_of(resource), stored.key, stored.revision, None, stored))
        return stored

    def update(self, resource: Resource, old: StoredObject, obj: Mapping[str, Any]) -> StoredObject:
        """Replace ``old``; raise Conflict unless it is current. Equal content is not written."""
        self._require_current(resource, old)
        stored = StoredObject.of(obj, self.revision + 1)
        if stored.body == old.body:
            return old
        self._commit(StorageEvent(table_of(resource), old.key, stored.revision, old, stored))
        return stored

    def remove(self, resource: Resource, old: StoredObject) -> StoredObject:
        """Remove an object and return its last state; raise Conflict unless ``old`` is current."""
        self._require_current(resource, old)
        change = StorageEvent(table_of(resource), old.key, self.revision + 1, old, None)
        self._commit(change)
        return change.deleted_object()

    def _require_current(self, resource: Resource, old: StoredObject) -> None:
        current = self.get(resource, old.key)
        if current is None:
            raise status.not_found(resource, old.key.name)
        if current is not old:
            raise status.conflict(resource, old.key.name)

    def restore(
        self, objects: Mapping[tuple[TableName, ObjectKey], StoredObject], revision: int
    ) -> None:
        """Fill an empty storage with the objects of a former one, as of its last revision."""
        for (name, key), stored in objects.items():
            table, at = self._table(name), sort_key(key)
            table.objects[at] = stored
            insort(table.order, at)
        self.revision = max(self.revision, revision)
        self.compact(self.revision)

    def replay(self) -> None:
        """Show observers the objects that were restored, as if each had just been created."""
        for name, stored in list(self.all_objects()):
            self._observe(StorageEvent(name, stored.key, stored.revision, None, stored))

    def _commit(self, change: StorageEvent) -> None:
        table = self._tables[change.table]
        at = sort_key(change.key)
        self.persist(change)
        self.revision = change.revision
        if change.new is not None:
            if change.old is None:
                insort(table.order, at)
            table.objects[at] = change.new
        else:
            del table.objects[at]
            del table.order[bisect_left(table.order, at)]
        table.history.append(change)
        self._changed_tables.append(table)
        self.compact(self.revision - self._window)
        for watcher in table.watchers:
            watcher.add(change)
        self._observe(change)

    def _observe(self, change: StorageEvent) -> None:
        # An observer's write comes back here: its event waits until all have seen this one.
        self._pending_events.append(change)
        if len(self._pending_events) > 1:
            return
        try:
            while self._pending_events:
                for observer in self.observers:
                    observer(self._pending_events[0])
                self._pending_events.popleft()
        finally:
            self._pending_events.clear()

    def compact(self, revision: int) -> None:
        """Drop the history before the revision: lists and watches from there are Expired."""
        self.compacted = max(self.compacted, min(revision, self.revision))
        while self._changed_tables and self._changed_tables[0].history[0].revision <= revision:
            self._changed_tables.popleft().history.popleft()

    def watch(self, resource: Resource, since: int, wake: Callable[[], None]) -> Watcher:
        """Start collecting changes after ``since``; raise Expired if it is too old.

        The caller must call :meth:`unwatch`.
        """
        table = self._table(resource)
        if since < self.compacted:
            message = f"too old resource version: {since} ({self.compacted})"
            raise status.expired(message)
        recent: deque[StorageEvent] = deque()
        for change in reversed(table.history):
            if change.revision <= since:
                break
            recent.appendleft(change)
        watcher = Watcher(recent, wake, self._window)
        table.watchers.append(watcher)
        return watcher

    def unwatch(self, resource: Resource, watcher: Watcher) -> None:
        self._table(resource).watchers.remove(watcher)

    def end_watches(self, resource: Resource) -> None:
        """End the watches of a resource in all of its versions."""
        for watcher in self._table(resource).watchers:
            watcher.ended = True
            watcher.wake()

    @property
    def watchers(self) -> int:
        """Return the number of open watches."""
        return sum(len(table.watchers) for table in self._tables.values())

    def all_objects(self, namespace: str = "") -> Iterator[tuple[TableName, StoredObject]]:
        """Iterate over the objects of all tables, or over those in a namespace."""
        for name, table in list(self._tables.items()):
            for key in _within(table.order, namespace):
                yield name, table.objects[key]


def _within(order: list[str], namespace: str) -> list[str]:
    if not namespace:
        return order[:]
    # "0" is the character after "/".
    return order[bisect_left(order, f"{namespace}/") : bisect_left(order, f"{namespace}0")]
