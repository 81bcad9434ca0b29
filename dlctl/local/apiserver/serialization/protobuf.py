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

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}


class ProtobufError(DlctlError):
    """The bytes are not an object of a supported kind."""


def decode(body: bytes) -> JSON:
    """Return the object in the protobuf envelope of Kubernetes."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body does not begin like Kubernetes protobuf")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    type_meta = dict(_fields(envelope.get(1, b"")))
    kind = type_meta.get(2, b"").decode()
    if kind not in _fields_by_number():
        raise ProtobufError(f"kind {kind} is not supported in protobuf")
    head = {"kind": kind, "apiVersion": type_meta.get(1, b"").decode()}
    return head | _message(kind, envelope.get(2, b""))


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
            result |= _message(kind, raw, name[1:])
            continue
        field = kinds()[kind].fields.get(name.rstrip("*"))
        if field is None:
            continue
        if field.shape[:1] == ("{}",):
            entry = dict(_fields(raw))
            value = _single(field, entry.get(2, b""))
            result.setdefault(field.name, {})[entry.get(1, b"").decode()] = value
        elif field.shape:
            result.setdefault(field.name, []).append(_single(field, raw))
        elif (value := _single(field, raw)) not in ("", 0, None) or name.endswith("*"):
            result[field.name] = value
    return result


def _single(field: Field, raw: Any) -> Any:
    if field.type in kinds():
        return _message(field.type, raw)
    return _DECODERS[field.type](raw)


def _integer(raw: int) -> int:
    # Negative numbers are encoded as their complement in 64 bits.
    return raw - 2**64 if raw >= 2**63 else raw


def _time(raw: bytes) -> str:
    parts = dict(_fields(raw))
    return timestamp(_datetime(parts)) if parts.get(1) else ""


def _microtime(raw: bytes) -> str:
    parts = dict(_fields(raw))
    if not parts.get(1):
        return ""
    return f"{_datetime(parts):%Y-%m-%dT%H:%M:%S}.{parts.get(2, 0) // 1000:06}Z"


def _datetime(parts: Mapping[int, Any]) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(parts[1], datetime.UTC)


def _integer_or_string(raw: bytes) -> int | str:
    parts = dict(_fields(raw))
    if parts.get(1):
        return str(parts.get(3, b"").decode())
    return int(parts.get(2, 0))


def _quantity(raw: bytes) -> str:
    return str(dict(_fields(raw)).get(1, b"").decode())


def _any(raw: bytes) -> Any:
    return msgspec.json.decode(dict(_fields(raw)).get(1, b"null"))


_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "any": _any,
    "bool": bool,
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "float": lambda raw: struct.unpack("<d", raw)[0],
    "int32": _integer,
    "int64": _integer,
    "intstr": _integer_or_string,
    "microtime": _microtime,
    "quantity": _quantity,
    "str": bytes.decode,
    "time": _time,
}


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field: an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _DELIMITED:
            size, at = _varint(data, at)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise ProtobufError(f"unknown wire type {wire}")
        if at + size > len(data):
            raise ProtobufError("unexpected end")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ProtobufError("unexpected end")
