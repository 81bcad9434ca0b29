"""Reading and writing single objects: the steps between a request and the storage.

All methods are synchronous, so each is one transaction. Deletion is in ``deletion``; HTTP, bodies
and patches are not known here.
"""

import random
import uuid
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey, Resource
from dlctl.clock import Clock, timestamp
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.request_options import parse_object_version
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.serialization.typed_decoding import decode_metadata
from dlctl.local.apiserver.status import FieldError, StatusError
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import StoredObject
from dlctl.local.apiserver.validation import metadata

# Modifies an object of one resource before its creation, beyond its strategy.
PrepareForCreate = Callable[[JSON], JSON]
# Modifies an object before an update, from the old object and the new one.
PrepareForUpdate = Callable[[JSON, JSON], JSON]
# Returns the new object with its field managers, from the old one, empty if there was none.
TrackFields = Callable[[JSON, JSON], JSON]
_GENERATE_TRIES: Final = 8
# No vowels and no characters that look alike, so that no words come out.
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_LENGTH: Final = 63
_IMMUTABLE_METADATA: Final = (
    "name",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def _untracked(_old: JSON, new: JSON) -> JSON:
    return new


@attrs.define
class Objects:
    """The objects of all resources, guarded by the rules that apply to every kind."""

    storage: Storage
    clock: Clock
    # By qualified resource name.
    prepare_for_create: dict[str, PrepareForCreate] = attrs.field(factory=dict)
    prepare_for_update: dict[str, PrepareForUpdate] = attrs.field(factory=dict)
    # Rejects a new object in a namespace that accepts none.
    check_namespace: Callable[[ServedResource, JSON], None] = lambda _served, _obj: None

    def get(self, served: ServedResource, key: ObjectKey) -> StoredObject:
        stored = self.storage.get(served.resource, key)
        if stored is None:
            raise status.not_found(served.resource, key.name)
        return stored

    def create(
        self,
        served: ServedResource,
        namespace: str,
        obj: JSON,
        *,
        track: TrackFields = _untracked,
        dry_run: bool = False,
    ) -> StoredObject:
        """Store a new object under its own or a generated name."""
        resource = served.resource
        obj = decode_metadata(obj, resource)
        meta = obj["metadata"]
        if _sent_version(obj) and not dry_run:
            message = "resourceVersion should not be set on objects to be created"
            raise status.StatusError(500, "", message)
        _set_namespace(obj, namespace if resource.namespaced else "")
        self.check_namespace(served, obj)
        prefix = meta.get("generateName", "")
        if meta.get("name") or not prefix:
            return self._create_named(served, obj, track, dry_run=dry_run)
        for _ in range(_GENERATE_TRIES - 1):
            named = {**obj, "metadata": meta | {"name": _generated_name(prefix)}}
            if self.storage.get(resource, _key(named)) is None:
                return self._create_named(served, named, track, dry_run=dry_run)
        raise status.no_free_name(resource, prefix)

    def _create_named(
        self, served: ServedResource, obj: JSON, track: TrackFields, *, dry_run: bool
    ) -> StoredObject:
        resource = served.resource
        meta = {
            **obj["metadata"],
            "uid": str(uuid.uuid4()),
            "creationTimestamp": timestamp(self.clock.now()),
        }
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(name, None)
        if resource_traits.has_generation(resource):
            meta["generation"] = 1
        obj = {**obj, "metadata": meta}
        if served.has_status and not resource_traits.keeps_status_on_create(resource):
            obj.pop("status", None)
        sent, wrong = obj, metadata.errors(obj, resource)
        obj = _admit_unless_invalid(
            wrong, resource, obj, lambda: served.strategy.admit_create(sent)
        )
        obj = track({}, obj)
        if prepare := self.prepare_for_create.get(resource.group_resource):
            obj = prepare(obj)
        if self.storage.get(resource, _key(obj)) is not None:
            raise status.already_exists(resource, obj["metadata"]["name"])
        if dry_run:
            # As in the real server, with the version that the client sent.
            return StoredObject.of(obj, _sent_version(sent))
        return self.storage.create(resource, obj)

    def create_by_update(
        self,
        served: ServedResource,
        key: ObjectKey,
        obj: JSON,
        *,
        track: TrackFields = _untracked,
        dry_run: bool = False,
    ) -> StoredObject:
        """Create the object of an update that found none; its resource version is ignored.

        :raises StatusError: if it has a UID: then the client means one that existed.
        """
        obj = decode_metadata(obj, served.resource)
        _check_uid(served.resource, key, "", obj)
        meta = {name: v for name, v in obj["metadata"].items() if name != "resourceVersion"}
        obj = {**obj, "metadata": meta}
        return self.create(served, key.namespace, obj, track=track, dry_run=dry_run)

    def update(  # noqa: PLR0913 - each is set by some endpoint.
        self,
        served: ServedResource,
        key: ObjectKey,
        change: Callable[[JSON], JSON],
        *,
        subresource: str = "",
        guarded_by_uid: bool = True,
        track: TrackFields = _untracked,
        dry_run: bool = False,
    ) -> StoredObject:
        """Store the result of ``change`` on the current object; equal content is not written.

        The result is checked against its own resource version, if it has one, and against the UID
        if that is what guards it.
        """
        old_stored = self.get(served, key)
        old = old_stored.decoded(served.resource)
        sent = decode_metadata(change(old_stored.decoded(served.resource)), served.resource)
        if guarded_by_uid:
            _check_uid(served.resource, key, old_stored.uid, sent)
        self._check_version(served, old_stored, sent)
        new = track(old, self._admit(served, old, sent, subresource))
        return self._commit(served, old_stored, new, dry_run=dry_run)

    def _commit(
        self, served: ServedResource, old: StoredObject, new: JSON, *, dry_run: bool
    ) -> StoredObject:
        finished = _completes_deletion(old, new)
        if finished and not dry_run:
            self.storage.remove(served.resource, old)
        if finished or dry_run:
            return StoredObject.of(new, old.revision)
        return self.storage.update(served.resource, old, new)

    def rewrite(
        self,
        served: ServedResource,
        key: ObjectKey,
        change: Callable[[JSON], JSON],
        *,
        dry_run: bool = False,
    ) -> StoredObject:
        """Store the result of ``change``, as the server itself, at the same generation."""
        old = self.get(served, key)
        new = change(old.decoded(served.resource))
        if not new["metadata"].get("finalizers"):
            new["metadata"].pop("finalizers", None)
        return self._commit(served, old, new, dry_run=dry_run)

    def _check_version(self, served: ServedResource, old: StoredObject, sent: JSON) -> None:
        resource = served.resource
        wanted = parse_object_version(sent["metadata"].get("resourceVersion", ""))
        if wanted and wanted != old.revision:
            raise status.conflict(resource, old.key.name)
        if not wanted and not resource_traits.allows_unconditional_update(resource):
            error = FieldError.invalid(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            plural = attrs.evolve(resource, kind=resource.plural)
            raise status.invalid(plural, old.key.name, [error])

    def _admit(self, served: ServedResource, old: JSON, sent: JSON, subresource: str) -> JSON:
        resource = served.resource
        before, wrong = old["metadata"], metadata.update_errors(old, sent)
        _set_namespace(sent, before.get("namespace", ""))
        kept = {name: before[name] for name in _IMMUTABLE_METADATA if name in before}
        meta = {k: v for k, v in sent["metadata"].items() if k not in _IMMUTABLE_METADATA} | kept
        meta["uid"] = before["uid"]
        meta.pop("generation", None)
        if "generation" in before:
            meta["generation"] = before["generation"]
        new = {**sent, "metadata": meta, "apiVersion": old["apiVersion"], "kind": old["kind"]}
        if subresource == "status":
            isolated = _status_only(resource, old, new)
            # Metadata of custom resources is not validated here, not even a wrong UID.
            wrong = wrong if resource_traits.is_built_in(resource) else []
            wrong = [*metadata.errors(isolated, resource), *wrong]
            new = _admit_unless_invalid(
                wrong, resource, old, lambda: served.strategy.admit_status(old, isolated)
            )
        else:
            if served.has_status:
                new.pop("status", None)
                new |= {"status": old["status"]} if "status" in old else {}
            prepare = self.prepare_for_update.get(resource.group_resource)
            if prepare and not subresource:
                new = prepare(old, new)
            whole, wrong = new, [*metadata.errors(new, resource), *wrong]
            new = _admit_unless_invalid(
                wrong, resource, old, lambda: served.strategy.admit_update(old, whole)
            )
        if "generation" in before and not subresource and _spec_differs(served, old, new):
            new = {**new, "metadata": new["metadata"] | {"generation": before["generation"] + 1}}
        return new


def _generated_name(prefix: str) -> str:
    """Return a name that begins with the prefix; it may be taken."""
    suffix = "".join(random.choices(_SUFFIX_ALPHABET, k=5))
    return prefix[: _GENERATED_LENGTH - len(suffix)] + suffix


def _key(obj: JSON) -> ObjectKey:
    return ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"].get("name", ""))


def _sent_version(obj: JSON) -> int:
    """Return the resource version of a new object; 0 if it is none."""
    try:
        return parse_object_version(obj["metadata"].get("resourceVersion", ""))
    except StatusError:
        return 0


def check_namespace_match(obj: JSON, namespace: str) -> None:
    """Reject an object that is sent to a namespace other than its own."""
    own = (obj.get("metadata") or {}).get("namespace")
    if own and own != namespace:
        message = (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        raise status.bad_request(message)


def _set_namespace(obj: JSON, namespace: str) -> None:
    check_namespace_match(obj, namespace)
    meta = obj["metadata"]
    meta.pop("namespace", None)
    if namespace:
        meta["namespace"] = namespace


def _check_uid(resource: Resource, key: ObjectKey, uid: str, sent: JSON) -> None:
    """Reject an object with another UID than the stored one's; any, if that is empty."""
    wanted = sent["metadata"].get("uid")
    if wanted and wanted != uid:
        parts = (
            resource.group if not resource_traits.is_built_in(resource) else "",
            resource.plural,
        )
        path = "/".join(filter(None, ("/registry", *parts, key.namespace, key.name)))
        message = (
            f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {wanted}, UID in object meta: {uid}"
        )
        raise status.conflict(resource, key.name, message)


def _admit_unless_invalid(
    wrong: list[FieldError], resource: Resource, obj: JSON, admit: Callable[[], JSON]
) -> JSON:
    """Return the admitted object; errors of metadata and of the rest are raised together."""
    name = obj["metadata"].get("name", "")
    try:
        admitted = admit()
    except StatusError as error:
        if not wrong or error.reason != "Invalid":
            raise
        more = [FieldError(**each) for each in (error.details or {}).get("causes", ())]
        raise status.invalid(resource, name, [*wrong, *more]) from None
    if wrong:
        raise status.invalid(resource, name, wrong)
    return admitted


def _status_only(resource: Resource, old: JSON, new: JSON) -> JSON:
    kept = {name: value for name, value in old.items() if name != "status"}
    if resource_traits.is_built_in(resource):
        # All but the owners is accepted, as in the real server.
        owners = {k: v for k, v in old["metadata"].items() if k == "ownerReferences"}
        meta = {k: v for k, v in new["metadata"].items() if k != "ownerReferences"}
        kept["metadata"] = meta | owners
    return kept | ({"status": new["status"]} if "status" in new else {})


def _spec_differs(served: ServedResource, old: JSON, new: JSON) -> bool:
    ignored = {"metadata", "status"} if served.has_status else {"metadata"}
    if resource_traits.is_built_in(served.resource):
        return old.get("spec") != new.get("spec")
    return _without(old, ignored) != _without(new, ignored)


def _without(obj: Mapping[str, object], names: set[str]) -> Mapping[str, object]:
    return {name: value for name, value in obj.items() if name not in names}


def _completes_deletion(old: StoredObject, new: JSON) -> bool:
    """Return whether an update removes what a deletion is waiting for."""
    if not old.meta.deletion_timestamp or old.meta.deletion_grace_period_seconds:
        return False
    if new["kind"] == "Namespace" and (new.get("spec") or {}).get("finalizers"):
        return False
    return not new["metadata"].get("finalizers")
