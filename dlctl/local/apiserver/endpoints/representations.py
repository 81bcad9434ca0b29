"""Representations of objects: whole, metadata only, or rows of a Table.

Chosen by ``Accept``. Bytes of stored objects are passed on unchanged. Lists are encoded in parts,
so that a long one is never in memory as a whole.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.clock import Clock
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.printing.tables import table
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.storage.stored_objects import StoredObject

_encode = msgspec.json.encode
_JSON_TYPES: Final = ("application/json", "application/*", "*/*", "")
METADATA_KIND: Final = ("PartialObjectMetadata", "meta.k8s.io/v1")
# More than aiohttp keeps for a client that does not read.
_PART_BYTES: Final = 1 << 16


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
        return _encode({**self._table(obj), "metadata": {"resourceVersion": str(stored.revision)}})

    def many(self, items: Iterable[StoredObject], list_meta: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the list in the chosen representation, in parts."""
        return in_parts(self._list_pieces(items, list_meta))

    def _list_pieces(
        self, items: Iterable[StoredObject], list_meta: Mapping[str, Any]
    ) -> Iterator[bytes]:
        if self.representation is Representation.TABLE:
            yield _encode({**self._table(), "metadata": list_meta}).removesuffix(b"]}")
        else:
            kind, version = self.served.resource.kind, self.served.resource.api_version
            if self.representation is Representation.METADATA:
                kind, version = METADATA_KIND
            head = {"kind": f"{kind}List", "apiVersion": version, "metadata": list_meta}
            yield _encode(head).removesuffix(b"}") + b',"items":['
        for index, stored in enumerate(items):
            yield (b"," if index else b"") + self._entry(stored)
        yield b"]}"

    def _entry(self, stored: StoredObject) -> bytes:
        """Return an object as it is in a list."""
        resource = self.served.resource
        if self.representation is Representation.METADATA:
            return _encode(_metadata_only(stored.decoded(resource)))
        if self.representation is Representation.TABLE:
            (row,) = self._table(stored.decoded(resource))["rows"]
            return _encode(row)
        # Typed lists of the real server omit the kind of their items.
        if resource_traits.is_built_in(resource):
            return stored.item()
        return self._encoded(stored)

    def _table(self, *objects: JSON) -> JSON:
        return table(self.served, objects, self.include, now=self.clock.now())

    def _encoded(self, stored: StoredObject) -> bytes:
        served = self.served
        if served.as_read is None or stored.revision > served.schema_revision:
            return stored.encoded(served.resource)
        return _encode(served.as_read(stored.decoded(served.resource)))


def in_parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join pieces to parts of some 64 KiB, or of the size of one piece, and yield these."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > _PART_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _metadata_only(obj: JSON) -> JSON:
    kind, api_version = METADATA_KIND
    return {"kind": kind, "apiVersion": api_version, "metadata": obj["metadata"]}
