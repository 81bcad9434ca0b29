"""Watch lines as values: a change, a bookmark, an error, or something malformed.

Nearly all lines are changes, so one typed pass decodes them; a second pass handles the rest.
"""

from typing import Final, Generic, TypeVar

import attrs
import msgspec

from dlctl.api.meta import Object, WatchEventType
from dlctl.api.nesting import MAX_BRACKETS, MAX_DEPTH, truncate_to_depth
from dlctl.kube.decoding import Malformed, decode, decoder, identify_malformed
from dlctl.kube.errors import ApiError, UnexpectedResponseError, error_from

T = TypeVar("T", bound=Object)

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class ObjectEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A changed object in its new state, or in its last state if it was deleted."""

    type: WatchEventType
    object: T

    @property
    def version(self) -> str:
        return self.object.metadata.resource_version


@attrs.frozen
class MalformedEvent:
    """A change to an object that does not fit its projection."""

    type: WatchEventType
    object: Malformed

    @property
    def version(self) -> str:
        return self.object.resource_version


@attrs.frozen
class Bookmark:
    """All changes up to this version have been sent; possibly also all initial objects."""

    version: str
    initial_end: bool = False


@attrs.frozen
class UnknownEvent:
    """An event of a type that this program does not know."""

    type: str
    version: str = ""


WatchEvent = ObjectEvent[T] | MalformedEvent | Bookmark | UnknownEvent


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: msgspec.Raw


class EventDecoder(Generic[T]):
    """Decodes the lines of one watch into events about one type of object."""

    def __init__(self, as_: type[T]) -> None:
        self._typed: msgspec.json.Decoder[ObjectEvent[T]] = decoder(ObjectEvent[as_])  # type: ignore[valid-type]

    def decode(self, line: bytes) -> WatchEvent[T] | ApiError:
        """Return the event; raise only UnexpectedResponseError, if the line is not an event."""
        try:
            return self._decode(line)
        except RecursionError as error:
            # The object is inside the event, and is cut off where a list cuts it off.
            cut = truncate_to_depth(line, 2 * MAX_DEPTH + 1, max_brackets=MAX_BRACKETS + 1)
            return self._decode(cut.text) if cut.is_complete else _by_type(cut.text, error)

    def _decode(self, line: bytes) -> WatchEvent[T] | ApiError:
        try:
            event = self._typed.decode(line)
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - a malformed object must not affect others
            return _by_type(line, error)
        if event.object.metadata.name:
            return event
        return _by_type(line, UnexpectedResponseError("the object has no name"))


def _by_type(line: bytes, error: Exception) -> MalformedEvent | Bookmark | UnknownEvent | ApiError:
    """Return an event that is not about a well-formed object, by the type in its envelope."""
    try:
        envelope: _Envelope = decoder(_Envelope).decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UnexpectedResponseError(f"watch: {error}") from error
    match envelope.type:
        case "BOOKMARK":
            return _bookmark(envelope.object)
        case "ERROR":
            return error_from(0, {}, bytes(envelope.object))
        case _ if envelope.type in WatchEventType.__members__:
            return MalformedEvent(
                WatchEventType(envelope.type), identify_malformed(envelope.object, error)
            )
        case _:
            return UnknownEvent(envelope.type)


def _bookmark(raw: msgspec.Raw) -> Bookmark:
    """Decode a bookmark, which has only a version and perhaps an annotation."""
    metadata = decode(bytes(raw), Object).metadata
    if not metadata.resource_version:
        raise UnexpectedResponseError("watch: a bookmark has no version")
    annotations = metadata.annotations or {}
    return Bookmark(metadata.resource_version, annotations.get(INITIAL_EVENTS_END) == "true")
