"""Representations of objects: whole, metadata only, or rows of a Table.

Chosen by ``Accept``. Bytes of stored objects are passed on unchanged.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.clock import Clock
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.printing.tables import table
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.storage.stored_objects import StoredObject, type_header

_encode = msgspec.json.encode
_JSON_TYPES: Final = ("application/json", "application/*", "*/*", "")
METADATA_KIND: Final = ("PartialObjectMetadata", "meta.k8s.io/v1")


class Representation(enum.Enum):
    """The representations of an object."""

    WHOLE = "whole"
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


def negotiate(accept: str) -> Representation:
    """Return the first supported representation of an Accept header; raise 406 if there is none."""
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        as_ = dict(part.partition("=")[::2] for part in parameters)
        if media.lower() not in _JSON_TYPES:
            continue
        match as_.get("as", "").removesuffix("List"):
            case "":
                return Representation.WHOLE
            case "Table" if as_.get("v") in ("v1", "v1beta1"):
                return Representation.TABLE
            case "PartialObjectMetadata" if as_.get("v") in ("v1", "v1beta1"):
                return Representation.METADATA
    raise status.not_acceptable()


@attrs.frozen
class Presenter:
    """The chosen representation of one resource's objects, for one request."""

    served: ServedResource
    representation: Representation
    clock: Clock
    # The part of each object in a Table: None, Metadata (the default) or Object.
    include: str = "Metadata"

    def one(self, stored: StoredObject) -> bytes:
        if self.representation is Representation.WHOLE:
            return self._encoded(stored)
        obj = stored.decoded(self.served.resource)
        if self.representation is Representation.METADATA:
            return _encode(_metadata_only(obj))
        return self._table([obj], {"resourceVersion": str(stored.revision)})

    def many(self, items: Sequence[StoredObject], list_meta: Mapping[str, Any]) -> bytes:
        """Return the list in the chosen representation."""
        resource = self.served.resource
        if self.representation is Representation.WHOLE:
            listed = attrs.evolve(resource, kind=f"{resource.kind}List")
            return b'%b"metadata":%b,"items":[%b]}' % (
                type_header(listed),
                _encode(list_meta),
                b",".join(self._item(stored) for stored in items),
            )
        objects = [stored.decoded(resource) for stored in items]
        if self.representation is Representation.TABLE:
            return self._table(objects, list_meta)
        return _encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": list_meta,
                "items": [_metadata_only(obj) for obj in objects],
            }
        )

    def _table(self, objects: Sequence[JSON], meta: Mapping[str, Any]) -> bytes:
        shown = table(self.served, objects, self.include, now=self.clock.now())
        return _encode({**shown, "metadata": meta})

    def _item(self, stored: StoredObject) -> bytes:
        # Typed lists of the real server omit the kind of their items.
        if resource_traits.is_built_in(self.served.resource):
            return stored.item()
        return self._encoded(stored)

    def _encoded(self, stored: StoredObject) -> bytes:
        served = self.served
        if served.as_read is None or stored.revision > served.schema_revision:
            return stored.encoded(served.resource)
        return _encode(served.as_read(stored.decoded(served.resource)))


def _metadata_only(obj: JSON) -> JSON:
    kind, api_version = METADATA_KIND
    return {"kind": kind, "apiVersion": api_version, "metadata": obj["metadata"]}
