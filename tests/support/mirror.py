"""The objects of one namespace of a remote server, kept up to date by watches.

Read like the embedded server's storage. It lags, but :meth:`Mirror.caught_up` waits.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey, Resource, WatchEventType
from dlctl.api.nesting import truncate_to_depth
from dlctl.kube.client import Client
from dlctl.kube.decoding import ListPage
from dlctl.local.apiserver.storage.stored_objects import (
    StorageEvent,
    StoredObject,
    TableName,
    table_of,
)

_CATCH_UP_S: Final = 60.0


@attrs.define(eq=False)
class _Table:
    resource: Resource
    objects: dict[ObjectKey, StoredObject] = attrs.field(factory=dict)
    # By key the last seen version, also of deleted objects.
    seen_revisions: dict[ObjectKey, int] = attrs.field(factory=dict)
    changed: asyncio.Event = attrs.field(factory=asyncio.Event)


@attrs.define(eq=False)
class Mirror:
    """The mirrored objects of the namespace; ``revision`` counts the changes.

    Contains the followed resources, from the first object on.
    """

    client: Client
    namespace: str
    tasks: asyncio.TaskGroup
    revision: int = 0
    observers: list[Callable[[StorageEvent], None]] = attrs.field(factory=list)
    _tables: dict[TableName, _Table] = attrs.field(factory=dict)
    _watches: list[asyncio.Task[None]] = attrs.field(factory=list)

    async def follow(self, resource: Resource) -> None:
        if table_of(resource) in self._tables:
            return
        table = self._tables[table_of(resource)] = _Table(resource)
        page = await self._listed(table)
        for obj in page.items:
            self._apply(table, WatchEventType.ADDED, obj)
        watch = self._watch(table, page.resource_version)
        self._watches.append(self.tasks.create_task(watch, name=f"mirror of {resource}"))

    def close(self) -> None:
        for watch in self._watches:
            watch.cancel()

    def get(self, resource: Resource, key: ObjectKey) -> StoredObject | None:
        return self._table(resource).objects.get(key)

    def objects(self, resource: Resource, namespace: str = "") -> list[StoredObject]:
        assert namespace == self.namespace
        return sorted(self._table(resource).objects.values(), key=lambda stored: stored.key.name)

    async def caught_up(self) -> None:
        """Wait until everything that happened before this call is known."""
        async with asyncio.timeout(_CATCH_UP_S), asyncio.TaskGroup() as group:
            for table in self._tables.values():
                group.create_task(self._catch_up(table))

    def _table(self, resource: Resource) -> _Table:
        return self._tables.get(table_of(resource)) or _Table(resource)

    async def _listed(self, table: _Table) -> ListPage[JSON]:
        return await self.client.list(table.resource, JSON, namespace=self.namespace)

    async def _watch(self, table: _Table, version: str) -> None:
        """Follow a table; the server may end a watch at any time, which is then resumed."""
        while True:
            watch = self.client.watch(
                table.resource, namespace=self.namespace, resource_version=version, bookmarks=True
            )
            async with watch as lines:
                async for line in lines:
                    # Objects that nest too deep for the decoder are reduced to their identity.
                    event = msgspec.json.decode(truncate_to_depth(line).text)
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._apply(table, WatchEventType(event["type"]), event["object"])

    def _apply(self, table: _Table, type_: WatchEventType, obj: JSON) -> None:
        version = int(obj["metadata"]["resourceVersion"])
        new = StoredObject.of(obj, version)
        old = table.objects.pop(new.key, None)
        if type_ is not WatchEventType.DELETED:
            table.objects[new.key] = new
        table.seen_revisions[new.key] = version
        self.revision += 1
        table.changed.set()
        gone = type_ is WatchEventType.DELETED
        change = StorageEvent(
            table_of(table.resource), new.key, version, old, None if gone else new
        )
        for observer in self.observers:
            observer(change)

    async def _catch_up(self, table: _Table) -> None:
        page = await self._listed(table)
        while not _shows(table, page):
            table.changed.clear()
            await table.changed.wait()


def _shows(table: _Table, page: ListPage[JSON]) -> bool:
    """Return whether a table is as fresh as a list."""
    listed = {_key(obj): int(obj["metadata"]["resourceVersion"]) for obj in page.items}
    known = all(table.seen_revisions.get(key, 0) >= version for key, version in listed.items())
    late = [s for s in table.objects.values() if s.key not in listed]
    return known and all(stored.revision > int(page.resource_version) for stored in late)


def _key(obj: JSON) -> ObjectKey:
    return ObjectKey(obj["metadata"]["namespace"], obj["metadata"]["name"])
