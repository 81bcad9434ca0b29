"""Decoding of protobuf objects, which kubectl and Helm send of kinds they know.

Reads only the kinds of ``kinds/numbers.txt``: responses are JSON, which every client understands.
Empty fields are omitted, as in JSON; not those that may be unset instead, marked by ``*`` there.
"""

import base64
import datetime
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from dlctl.api.core_types.type_tables import Field
from dlctl.api.json_types import JSON
from dlctl.clock import timestamp
from dlctl.errors import DlctlError
from dlctl.local.apiserver.serialization.builtin_types import kinds
from dlctl.local.apiserver.serialization.nesting_depth import decode_json

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_MAX_BITS: Final = 64
_CUT_OFF: Final = "unexpected EOF"


class ProtobufError(DlctlError):
    """The bytes are not an object."""


class UnsupportedKindError(ProtobufError):
    """The object is of a kind that is not read from protobuf."""


def decode(body: bytes) -> JSON:
    """Return the object in the protobuf envelope of Kubernetes.

    :raises ProtobufError: if it is malformed, mostly in the words of the real server.
    """
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(_MAGIC):
        prefix = " ".join(map(str, _MAGIC))
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    if body == _MAGIC:
        raise ProtobufError("empty body")
    envelope = _parts(body[len(_MAGIC) :], "Unknown")
    type_meta = _parts(envelope.get(1, b""), "TypeMeta")
    kind = _text(type_meta.get(2, b""), "Kind")
    if kind not in _fields_by_number():
        raise UnsupportedKindError(f"kind {kind} is not supported in protobuf")
    head = {"kind": kind, "apiVersion": _text(type_meta.get(1, b""), "APIVersion")}
    return head | _message(kind, _bytes(envelope.get(2, b""), "Raw"))


@lru_cache(maxsize=1)
def _fields_by_number() -> Mapping[str, Mapping[int, str]]:
    """Return the fields of each message by number: their position in the line, from 1.

    ``+Name`` stands for a message whose fields belong to the one around it.
    """
    lines = (files(__package__) / "kinds" / "numbers.txt").read_text().splitlines()
    pairs = (line.split(" = ") for line in lines)
    return {name: dict(enumerate(words.split(), start=1)) for name, words in pairs}


def _message(kind: str, data: bytes, message: str = "") -> JSON:
    result: JSON = {}
    names = _fields_by_number().get(message or kind, {})
    for number, raw in _fields(data):
        name = names.get(number, "")
        if name.startswith("+"):
            result |= _message(kind, _bytes(raw, name[1:]), name[1:])
            continue
        field = kinds()[kind].fields.get(name.rstrip("*"))
        if field is None:
            continue
        if field.shape[:1] == ("{}",):
            entry = _parts(raw, field.name)
            value = _single(field, entry.get(2, b""))
            result.setdefault(field.name, {})[_text(entry.get(1, b""), field.name)] = value
        elif field.shape:
            result.setdefault(field.name, []).append(_single(field, raw))
        elif (value := _single(field, raw)) not in ("", 0, None) or name.endswith("*"):
            result[field.name] = value
    return result


def _single(field: Field, raw: Any) -> Any:
    if field.type in kinds():
        return _message(field.type, _bytes(raw, field.name))
    return _DECODERS[field.type](raw, field.name)


def _parts(raw: Any, name: str) -> dict[int, Any]:
    """Return the fields of a message by number."""
    return dict(_fields(_bytes(raw, name)))


def _bytes(raw: Any, name: str) -> bytes:
    if not isinstance(raw, bytes):
        raise ProtobufError(f"proto: wrong wireType = {_VARINT} for field {_go_name(name)}")
    return raw


def _text(raw: Any, name: str) -> str:
    # As in JSON, with a replacement for each byte that is not UTF-8.
    return _bytes(raw, name).decode(errors="replace")


def _integer(raw: Any, name: str) -> int:
    if not isinstance(raw, int):
        raise ProtobufError(f"proto: wrong wireType = {_DELIMITED} for field {_go_name(name)}")
    # Negative numbers are encoded as their complement in 64 bits.
    return raw - 2**64 if raw >= 2**63 else raw


def _go_name(name: str) -> str:
    return name[:1].upper() + name[1:]


def _float(raw: Any, name: str) -> float:
    try:
        value: float = struct.unpack("<d", _bytes(raw, name))[0]
    except struct.error as error:
        raise ProtobufError(f"{name}: {error}") from None
    return value


def _time(raw: Any, name: str) -> str:
    parts = _parts(raw, name)
    return timestamp(_datetime(parts)) if parts.get(1) else ""


def _microtime(raw: Any, name: str) -> str:
    parts = _parts(raw, name)
    if not parts.get(1):
        return ""
    microseconds = _integer(parts.get(2, 0), "Nanos") // 1000
    return f"{_datetime(parts):%Y-%m-%dT%H:%M:%S}.{microseconds % 1_000_000:06}Z"


def _datetime(parts: Mapping[int, Any]) -> datetime.datetime:
    seconds = _integer(parts[1], "Seconds")
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        raise ProtobufError(f"no time is {seconds} seconds after 1970") from None


def _integer_or_string(raw: Any, name: str) -> int | str:
    parts = _parts(raw, name)
    if parts.get(1):
        return _text(parts.get(3, b""), "StrVal")
    return _integer(parts.get(2, 0), "IntVal")


def _quantity(raw: Any, name: str) -> str:
    return _text(_parts(raw, name).get(1, b""), "String")


def _any(raw: Any, name: str) -> Any:
    try:
        return decode_json(_text(_parts(raw, name).get(1, b"null"), "Raw"))
    except msgspec.DecodeError as error:
        raise ProtobufError(f"{name}: {error}") from None


_DECODERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "any": _any,
    "bool": lambda raw, name: bool(_integer(raw, name)),
    "bytes": lambda raw, name: base64.b64encode(_bytes(raw, name)).decode(),
    "float": _float,
    "int32": _integer,
    "int64": _integer,
    "intstr": _integer_or_string,
    "microtime": _microtime,
    "quantity": _quantity,
    "str": _text,
    "time": _time,
}


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field: an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise ProtobufError(f"proto: illegal tag {number} (wire type {wire})")
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _DELIMITED:
            size, at = _varint(data, at)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if at + size > len(data):
            raise ProtobufError(_CUT_OFF)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        if shift >= _MAX_BITS:
            raise ProtobufError("proto: integer overflow")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ProtobufError(_CUT_OFF)
