"""Reading and writing single objects: what happens between a request and the storage.

All methods are synchronous, so each is one transaction. Deletion is in ``deletion``; HTTP, bodies
and patches are not known here.
"""

import datetime
import uuid
from collections.abc import Callable, Mapping

import attrs

from dlctl.api.meta import ObjectKey, Resource
from dlctl.clock import Clock
from dlctl.local.apiserver import metadata, status, traits
from dlctl.local.apiserver.changes import JSON, Stored
from dlctl.local.apiserver.options import object_version
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.shaping import with_metadata
from dlctl.local.apiserver.status import Cause, StatusError
from dlctl.local.apiserver.storage import Storage

# What is done to an object of one resource before it is created, beyond its strategy.
Prepare = Callable[[JSON], JSON]
# The same before an update, from the old object and the new one.
PrepareUpdate = Callable[[JSON, JSON], JSON]
_GENERATE_TRIES = 8
_KEPT = ("name", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def timestamp(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@attrs.define
class Objects:
    """The objects of all resources, guarded by the rules that every kind obeys."""

    storage: Storage
    clock: Clock
    # By qualified resource name.
    prepare: dict[str, Prepare] = attrs.field(factory=dict)
    prepare_update: dict[str, PrepareUpdate] = attrs.field(factory=dict)
    # Refuses a new object in a namespace that does not take any.
    check_namespace: Callable[[ServedResource, JSON], None] = lambda _served, _obj: None

    def get(self, served: ServedResource, key: ObjectKey) -> Stored:
        stored = self.storage.get(served.resource, key)
        if stored is None:
            raise status.not_found(served.resource, key.name)
        return stored

    def create(
        self, served: ServedResource, namespace: str, obj: JSON, *, dry_run: bool = False
    ) -> Stored:
        """Store a new object under its own or a generated name."""
        resource = served.resource
        obj = with_metadata(obj, resource)
        meta = obj["metadata"]
        if meta.get("resourceVersion"):
            message = "resourceVersion should not be set on objects to be created"
            raise status.StatusError(500, "", message)
        _place(obj, namespace if resource.namespaced else "")
        self.check_namespace(served, obj)
        prefix = meta.get("generateName", "")
        if meta.get("name") or not prefix:
            return self._create_named(served, obj, dry_run=dry_run)
        for _ in range(_GENERATE_TRIES - 1):
            named = {**obj, "metadata": meta | {"name": metadata.generated_name(prefix)}}
            if self.storage.get(resource, _key(named)) is None:
                return self._create_named(served, named, dry_run=dry_run)
        raise status.no_free_name(resource, prefix)

    def _create_named(self, served: ServedResource, obj: JSON, *, dry_run: bool) -> Stored:
        resource = served.resource
        meta = {
            **obj["metadata"],
            "uid": str(uuid.uuid4()),
            "creationTimestamp": timestamp(self.clock.now()),
        }
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(name, None)
        if traits.generation_kept(resource):
            meta["generation"] = 1
        obj = {**obj, "metadata": meta}
        if served.has_status and not traits.status_taken_on_create(resource):
            obj.pop("status", None)
        sent, wrong = obj, metadata.causes(obj, resource)
        obj = _unless(wrong, resource, obj, lambda: served.strategy.admit_create(sent))
        if prepare := self.prepare.get(resource.qualified):
            obj = prepare(obj)
        if self.storage.get(resource, _key(obj)) is not None:
            raise status.already_exists(resource, obj["metadata"]["name"])
        return Stored.of(obj, 0) if dry_run else self.storage.create(resource, obj)

    def create_by_update(
        self, served: ServedResource, key: ObjectKey, obj: JSON, *, dry_run: bool = False
    ) -> Stored:
        """Store as a new object what an update has not found; that it had a version is forgotten.

        :raises StatusError: if it has a UID: then the sender means one that was there.
        """
        obj = with_metadata(obj, served.resource)
        _check_uid(served.resource, key, "", obj)
        meta = {name: v for name, v in obj["metadata"].items() if name != "resourceVersion"}
        return self.create(served, key.namespace, {**obj, "metadata": meta}, dry_run=dry_run)

    def update(
        self,
        served: ServedResource,
        key: ObjectKey,
        change: Callable[[JSON], JSON],
        *,
        subresource: str = "",
        guarded_by_uid: bool = True,
        dry_run: bool = False,
    ) -> Stored:
        """Store what ``change`` makes of the current object; the same content is no write.

        The result of ``change`` is checked against the version it names itself, if it names one,
        and against the UID if that is what guards it.
        """
        old_stored = self.get(served, key)
        old = old_stored.decoded(served.resource)
        sent = with_metadata(change(old_stored.decoded(served.resource)), served.resource)
        if guarded_by_uid:
            _check_uid(served.resource, key, old_stored.uid, sent)
        self._check_version(served, old_stored, sent)
        new = self._admitted(served, old, sent, subresource)
        return self._committed(served, old_stored, new, dry_run=dry_run)

    def _committed(
        self, served: ServedResource, old: Stored, new: JSON, *, dry_run: bool
    ) -> Stored:
        finished = _finished_by(old, new)
        if finished and not dry_run:
            self.storage.remove(served.resource, old)
        if finished or dry_run:
            return Stored.of(new, old.revision)
        return self.storage.update(served.resource, old, new)

    def rewrite(
        self,
        served: ServedResource,
        key: ObjectKey,
        change: Callable[[JSON], JSON],
        *,
        dry_run: bool = False,
    ) -> Stored:
        """Store what ``change`` makes of the object, as the server itself: nothing is isolated."""
        old = self.get(served, key)
        before = old.decoded(served.resource)
        new = change(old.decoded(served.resource))
        if "generation" in before["metadata"] and before.get("spec") != new.get("spec"):
            generation = before["metadata"]["generation"] + 1
            new = {**new, "metadata": new["metadata"] | {"generation": generation}}
        if not new["metadata"].get("finalizers"):
            new["metadata"].pop("finalizers", None)
        return self._committed(served, old, new, dry_run=dry_run)

    def _check_version(self, served: ServedResource, old: Stored, sent: JSON) -> None:
        resource = served.resource
        wanted = object_version(sent["metadata"].get("resourceVersion", ""))
        if wanted and wanted != old.revision:
            raise status.conflict(resource, old.key.name)
        if not wanted and not traits.updated_unconditionally(resource):
            cause = Cause.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            plural = attrs.evolve(resource, kind=resource.plural)
            raise status.invalid(plural, old.key.name, [cause])

    def _admitted(self, served: ServedResource, old: JSON, sent: JSON, subresource: str) -> JSON:
        resource = served.resource
        before, wrong = old["metadata"], metadata.update_causes(old, sent)
        _place(sent, before.get("namespace", ""))
        kept = {name: before[name] for name in _KEPT if name in before}
        meta = {k: v for k, v in sent["metadata"].items() if k not in _KEPT} | kept
        meta["uid"] = before["uid"]
        meta.pop("generation", None)
        if "generation" in before:
            meta["generation"] = before["generation"]
        new = {**sent, "metadata": meta, "apiVersion": old["apiVersion"], "kind": old["kind"]}
        if subresource == "status":
            isolated = _status_only(resource, old, new)
            # The metadata of custom resources is not looked at here, a wrong UID included.
            wrong = wrong if traits.built_in(resource) else []
            wrong = [*metadata.causes(isolated, resource), *wrong]
            new = _unless(wrong, resource, old, lambda: served.strategy.admit_status(old, isolated))
        else:
            if served.has_status:
                new.pop("status", None)
                new |= {"status": old["status"]} if "status" in old else {}
            prepare = self.prepare_update.get(resource.qualified)
            if prepare and not subresource:
                new = prepare(old, new)
            whole, wrong = new, [*metadata.causes(new, resource), *wrong]
            new = _unless(wrong, resource, old, lambda: served.strategy.admit_update(old, whole))
        if "generation" in before and not subresource and _spec_differs(served, old, new):
            new = {**new, "metadata": new["metadata"] | {"generation": before["generation"] + 1}}
        return new


def _key(obj: JSON) -> ObjectKey:
    return ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"].get("name", ""))


def check_place(obj: JSON, namespace: str) -> None:
    """Refuse an object that is sent to a namespace other than its own."""
    own = (obj.get("metadata") or {}).get("namespace")
    if own and own != namespace:
        message = (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        raise status.bad_request(message)


def _place(obj: JSON, namespace: str) -> None:
    check_place(obj, namespace)
    meta = obj["metadata"]
    meta.pop("namespace", None)
    if namespace:
        meta["namespace"] = namespace


def _check_uid(resource: Resource, key: ObjectKey, uid: str, sent: JSON) -> None:
    """Refuse what names another UID than the object's; any, if the object's is empty."""
    wanted = sent["metadata"].get("uid")
    if wanted and wanted != uid:
        parts = (resource.group if not traits.built_in(resource) else "", resource.plural)
        path = "/".join(filter(None, ("/registry", *parts, key.namespace, key.name)))
        message = (
            f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {wanted}, UID in object meta: {uid}"
        )
        raise status.conflict(resource, key.name, message)


def _unless(wrong: list[Cause], resource: Resource, obj: JSON, admit: Callable[[], JSON]) -> JSON:
    """Return what is admitted; what is wrong with metadata and the rest is told at once."""
    name = obj["metadata"].get("name", "")
    try:
        admitted = admit()
    except StatusError as error:
        if not wrong or error.reason != "Invalid":
            raise
        more = [Cause(**cause) for cause in (error.details or {}).get("causes", ())]
        raise status.invalid(resource, name, [*wrong, *more]) from None
    if wrong:
        raise status.invalid(resource, name, wrong)
    return admitted


def _status_only(resource: Resource, old: JSON, new: JSON) -> JSON:
    kept = {name: value for name, value in old.items() if name != "status"}
    if traits.built_in(resource):
        # All but the owners goes through, as with the real server.
        owners = {k: v for k, v in old["metadata"].items() if k == "ownerReferences"}
        meta = {k: v for k, v in new["metadata"].items() if k != "ownerReferences"}
        kept["metadata"] = meta | owners
    return kept | ({"status": new["status"]} if "status" in new else {})


def _spec_differs(served: ServedResource, old: JSON, new: JSON) -> bool:
    ignored = {"metadata", "status"} if served.has_status else {"metadata"}
    if traits.built_in(served.resource):
        return old.get("spec") != new.get("spec")
    return _without(old, ignored) != _without(new, ignored)


def _without(obj: Mapping[str, object], names: set[str]) -> Mapping[str, object]:
    return {name: value for name, value in obj.items() if name not in names}


def _finished_by(old: Stored, new: JSON) -> bool:
    """Tell whether an update takes away what a deletion has waited for."""
    if not old.meta.deletion_timestamp or old.meta.deletion_grace_period_seconds:
        return False
    if new["kind"] == "Namespace" and (new.get("spec") or {}).get("finalizers"):
        return False
    return not new["metadata"].get("finalizers")
