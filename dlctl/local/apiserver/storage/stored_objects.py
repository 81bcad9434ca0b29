"""Stored objects and their changes: values that lists and watches share.

An object is encoded once per revision; all readers get the same bytes and must decode their own
copy to change it. ``storage`` decides what is stored.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey, Resource, WatchEventType
from dlctl.local.apiserver.serialization.nesting_depth import DeepCalls

# All versions of a resource share a table: (group, plural).
TableName = tuple[str, str]

# Sorted keys: equal objects have equal bytes, however the client wrote them.
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def table_of(resource: Resource) -> TableName:
    return resource.group, resource.plural


def type_header(resource: Resource) -> bytes:
    """Return the beginning of an encoded object of the resource."""
    return b'{"kind":"%b","apiVersion":"%b",' % (
        resource.kind.encode(),
        resource.api_version.encode(),
    )


# The beginning of the part of an object that is encoded once and kept.
_OPENING = b'{"metadata":{'


class StoredMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of ``metadata`` that storage itself reads."""

    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[JSON] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _MetaOnly(msgspec.Struct, frozen=True):
    metadata: StoredMeta


_decode_meta = msgspec.json.Decoder(_MetaOnly).decode


@attrs.define(eq=False, slots=False)
class StoredObject:
    """An immutable object as of one revision.

    ``body`` is its JSON without kind, apiVersion and resourceVersion: it serves every version of
    the resource, and two revisions with the same content have the same body.
    """

    key: ObjectKey
    revision: int
    body: bytes
    labels: Mapping[str, str]
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any], revision: int) -> Self:
        """Encode the object; its own resource version is ignored."""
        meta = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        rest = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion", "metadata")}
        with DeepCalls():
            body = _encode(meta)[1:] + (b"," + _encode(rest)[1:] if rest else b"}")
        key = ObjectKey(meta.get("namespace") or "", meta["name"])
        return cls(key, revision, body, meta.get("labels") or {}, meta["uid"])

    @classmethod
    def restored(cls, key: ObjectKey, revision: int, content: bytes) -> Self:
        """Return an object from what :meth:`content` has returned."""
        body = content.removeprefix(_OPENING)
        unlabelled = cls(key, revision, body, {}, "")
        meta = unlabelled.meta
        return cls(key, revision, body, meta.labels or {}, meta.uid)

    def content(self) -> bytes:
        """Return its JSON without kind, apiVersion and resourceVersion."""
        return _OPENING + self.body

    @cached_property
    def meta(self) -> StoredMeta:
        with DeepCalls():
            return _decode_meta(_OPENING + self.body).metadata

    def item(self) -> bytes:
        """Return the JSON of the object without its kind, as in lists of built-ins."""
        if not self.revision:
            # A dry run: the object was never stored.
            return _OPENING + self.body
        return b'{"metadata":{"resourceVersion":"%d",%b' % (self.revision, self.body)

    def encoded(self, resource: Resource) -> bytes:
        return type_header(resource) + self.item()[1:]

    def decoded(self, resource: Resource) -> JSON:
        """Return a new object, which the caller may modify."""
        with DeepCalls():
            return _decode(self.encoded(resource))


def watch_event_line(type_: str, body: bytes) -> bytes:
    """Return one line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


@attrs.define(eq=False)
class StorageEvent:
    """One revision of one object: ``old`` and ``new``, one of which may be None.

    A removal has the last state, with the revision of the removal (:meth:`deleted_object`).
    """

    table: TableName
    key: ObjectKey
    revision: int
    old: StoredObject | None
    new: StoredObject | None

    def deleted_object(self) -> StoredObject:
        """Return the last state, for watchers that no longer see the object."""
        assert self.old is not None
        # The same object with a later revision.
        return attrs.evolve(self.old, revision=self.revision)

    def shown_object(self, type_: WatchEventType) -> StoredObject:
        """Return the state that an event of a watch shows."""
        if self.new is None or type_ is WatchEventType.DELETED:
            return self.deleted_object()
        return self.new
