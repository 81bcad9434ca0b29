"""Garbage collection of dependents, and of the contents of terminating namespaces.

A task follows the storage; objects that wait for others are checked again when those change.
"""

import asyncio
import logging
from collections.abc import Container
from typing import Final

import attrs
from cachetools import LRUCache

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, UID, ObjectKey
from dlctl.local.apiserver.request_options import DeleteRequestOptions
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage import deletion
from dlctl.local.apiserver.storage.deletion import FOREGROUND, ORPHAN
from dlctl.local.apiserver.storage.namespaces import NamespaceLifecycle
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.apiserver.storage.stored_objects import (
    StorageEvent,
    StoredObject,
    TableName,
    table_of,
)

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0
# That many owners may be deleted at once, and their kind with them.
_ABSENT: Final = 20_000
# The location of an object: its table, and its key there.
ObjectLocation = tuple[TableName, ObjectKey]


@attrs.frozen
class _Owners:
    """The owner references of an object, by the state of the owners."""

    solid: list[JSON] = attrs.field(factory=list)
    dangling: list[JSON] = attrs.field(factory=list)
    # In foreground deletion: they wait until the object is gone.
    waiting: list[JSON] = attrs.field(factory=list)


@attrs.define(eq=False)
class GarbageCollector:
    """Deletes objects that have lost their owners, and the contents of terminating namespaces."""

    objects: Objects
    registry: ResourceRegistry
    lifecycle: NamespaceLifecycle
    # By the UID of the owner.
    _dependents: dict[str, set[ObjectLocation]] = attrs.field(factory=dict)
    # Owners known to be gone, even if nothing of their kind is served any more.
    _absent: LRUCache[str, None] = attrs.field(factory=lambda: LRUCache(_ABSENT))
    _pending: dict[ObjectLocation, None] = attrs.field(factory=dict)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        self.objects.storage.observers.append(self.observe)

    def observe(self, change: StorageEvent) -> None:
        """Queue the work that a change causes; :meth:`run` does it later."""
        place = (change.table, change.key)
        old, new = _owner_references(change.old), _owner_references(change.new)
        for uid in new.keys() - old.keys():
            self._dependents.setdefault(uid, set()).add(place)
        for uid in [uid for uid, reference in old.items() if new.get(uid) != reference]:
            if uid not in new:
                self._forget_dependent(uid, place)
            # It may wait in foreground deletion.
            if owner := self._owner(old[uid], change.key.namespace):
                self._enqueue((table_of(owner[0].resource), owner[1]))
        if change.new is None:
            assert change.old is not None
            self._on_deleted(change.old)
        elif new or change.new.meta.deletion_timestamp or change.table == table_of(NAMESPACES):
            self._enqueue(place)

    def _forget_dependent(self, owner: str, place: ObjectLocation) -> None:
        places = self._dependents.get(owner, set())
        places.discard(place)
        if not places:
            self._dependents.pop(owner, None)

    def _on_deleted(self, stored: StoredObject) -> None:
        for place in self._dependents.get(stored.uid, ()):
            self._absent[stored.uid] = None
            self._enqueue(place)
        # Its namespace may wait for being empty.
        if stored.key.namespace:
            self._enqueue((table_of(NAMESPACES), ObjectKey("", stored.key.namespace)))

    def _enqueue(self, place: ObjectLocation) -> None:
        self._pending[place] = None
        self._wake.set()

    async def run(self) -> None:
        """Collect garbage until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                place = next(iter(self._pending))
                del self._pending[place]
                try:
                    self._collect(place)
                except StatusError as error:
                    # The disk of the journal may be full.
                    logger.warning("garbage not collected", extra={"error": str(error)})
                    self._enqueue(place)
                    await asyncio.sleep(_RETRY_S)
                # A large job has many pods: requests must be served in between.
                await asyncio.sleep(0)

    def _collect(self, place: ObjectLocation) -> None:
        found = self._get(place)
        if found is None:
            return
        served, stored = found
        if served.resource == NAMESPACES:
            self._sync_namespace(stored)
        elif stored.meta.deletion_timestamp:
            self._finalize(served, stored)
        elif stored.meta.owner_references:
            self._attempt_to_delete(served, stored)

    def _sync_namespace(self, namespace: StoredObject) -> None:
        if namespace.meta.deletion_timestamp:
            self.lifecycle.delete_contents(namespace)
        else:
            self.lifecycle.create_default_account(namespace.key.name)

    def _attempt_to_delete(self, served: ServedResource, stored: StoredObject) -> None:
        """Delete an object without owners; otherwise remove references to missing owners."""
        owners = self._owners(stored)
        if owners.solid:
            lost = {reference["uid"] for reference in (*owners.dangling, *owners.waiting)}
            if lost:
                self.objects.rewrite(served, stored.key, lambda obj: _without_owners(obj, lost))
            return
        if not owners.dangling and not owners.waiting:
            return
        finalizers = stored.meta.finalizers or ()
        propagation = "Background"
        if (owners.waiting and self._dependents.get(stored.uid)) or FOREGROUND in finalizers:
            propagation = "Foreground"
        elif ORPHAN in finalizers:
            propagation = "Orphan"
        options = DeleteRequestOptions(propagation=propagation, uid=UID(stored.uid))
        deletion.delete(self.objects, served, stored.key, options)

    def _owners(self, stored: StoredObject) -> _Owners:
        owners = _Owners()
        for reference in stored.meta.owner_references or ():
            found = self._owner(reference, stored.key.namespace)
            if reference["uid"] in self._absent:
                owners.dangling.append(reference)
                continue
            if found is None:
                # Its kind is unknown: it may still exist.
                owners.solid.append(reference)
                continue
            owner = self.objects.storage.get(found[0].resource, found[1])
            if owner is None or owner.uid != reference["uid"]:
                owners.dangling.append(reference)
            elif owner.meta.deletion_timestamp and FOREGROUND in (owner.meta.finalizers or ()):
                owners.waiting.append(reference)
            else:
                owners.solid.append(reference)
        return owners

    def _owner(self, reference: JSON, namespace: str) -> tuple[ServedResource, ObjectKey] | None:
        group = reference["apiVersion"].rpartition("/")[0]
        for served in self.registry:
            resource = served.resource
            if (resource.group, resource.kind) == (group, reference["kind"]):
                at = namespace if resource.namespaced else ""
                return served, ObjectKey(at, reference["name"])
        return None

    def _finalize(self, served: ServedResource, stored: StoredObject) -> None:
        """Apply the deletion's propagation policy, then remove its finalizer."""
        finalizers = stored.meta.finalizers or ()
        dependents = list(self._dependents.get(stored.uid, ()))
        if ORPHAN in finalizers:
            for place in dependents:
                self._orphan_dependent(place, stored.uid)
            self._remove_finalizer(served, stored, ORPHAN)
        elif FOREGROUND in finalizers:
            if not any(self._blocks_owner_deletion(place, stored.uid) for place in dependents):
                self._remove_finalizer(served, stored, FOREGROUND)
            for place in dependents:
                self._enqueue(place)

    def _orphan_dependent(self, place: ObjectLocation, owner: str) -> None:
        found = self._get(place)
        if found is not None:
            served, stored = found
            self.objects.rewrite(served, stored.key, lambda obj: _without_owners(obj, {owner}))

    def _blocks_owner_deletion(self, place: ObjectLocation, owner: str) -> bool:
        found = self._get(place)
        return found is not None and any(
            reference["uid"] == owner and reference.get("blockOwnerDeletion")
            for reference in found[1].meta.owner_references or ()
        )

    def _get(self, place: ObjectLocation) -> tuple[ServedResource, StoredObject] | None:
        table, key = place
        for served in self.registry:
            if table_of(served.resource) == table:
                stored = self.objects.storage.get(served.resource, key)
                return (served, stored) if stored is not None else None
        return None

    def _remove_finalizer(
        self, served: ServedResource, stored: StoredObject, finalizer: str
    ) -> None:
        def without(obj: JSON) -> JSON:
            kept = [each for each in obj["metadata"]["finalizers"] if each != finalizer]
            return {**obj, "metadata": obj["metadata"] | {"finalizers": kept}}

        self.objects.rewrite(served, stored.key, without)


def _without_owners(obj: JSON, uids: Container[str]) -> JSON:
    meta = dict(obj["metadata"])
    meta["ownerReferences"] = [ref for ref in meta["ownerReferences"] if ref["uid"] not in uids]
    if not meta["ownerReferences"]:
        del meta["ownerReferences"]
    return {**obj, "metadata": meta}


def _owner_references(stored: StoredObject | None) -> dict[str, JSON]:
    references = stored.meta.owner_references if stored else None
    return {reference["uid"]: reference for reference in references or ()}
