"""OpenAPI v2 in protobuf, the form in which kubectl reads it when a kind has no document in v3.

Only the fields that ``openapi`` writes have numbers here; others are left out.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from dlctl.api.json_types import JSON

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# In requests also with a character that is not allowed in media types.
_ACCEPTED: Final = (MEDIA_TYPE, MEDIA_TYPE.replace("v2.v1", "v2@v1"))
# Writes a value as the field with a number.
_Write = Callable[[int, Any], bytes]
_Fields = Mapping[str, tuple[int, _Write]]
_VARINT, _DOUBLE, _DELIMITED = 0, 1, 2


def accepts_protobuf(accept: str) -> bool:
    return any(clause.partition(";")[0].strip() in _ACCEPTED for clause in accept.split(","))


def encode(document: JSON) -> bytes:
    """Return an OpenAPI v2 document as its protobuf message."""
    return _fields(document, _DOCUMENT)


def _varint(value: int) -> bytes:
    low = value & 0x7F
    # Negative numbers are encoded as their complement in 64 bits.
    rest = (value & (1 << 64) - 1) >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _bytes(number: int, value: bytes) -> bytes:
    return _tag(number, _DELIMITED) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _integer(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(int(value))


def _double(number: int, value: float) -> bytes:
    return _tag(number, _DOUBLE) + struct.pack("<d", value)


def _any(number: int, value: object) -> bytes:
    """Write a value as text: JSON is YAML."""
    return _bytes(number, _bytes(2, msgspec.json.encode(value)))


def _each(write: _Write) -> _Write:
    def write_all(number: int, values: Iterable[Any]) -> bytes:
        return b"".join(write(number, value) for value in values)

    return write_all


def _inside(number_inside: int, write: _Write) -> _Write:
    """Return a function that writes a value as the only field of a message."""
    return lambda number, value: _bytes(number, write(number_inside, value))


def _by_name(write: _Write) -> _Write:
    """Return a function that writes a map as a repeated message of name and value."""

    def write_all(number: int, values: Mapping[str, Any]) -> bytes:
        return b"".join(
            _bytes(number, _text(1, name) + write(2, value)) for name, value in values.items()
        )

    return write_all


def _message(fields: Callable[[], _Fields], *, extension: int = 0) -> _Write:
    return lambda number, value: _bytes(number, _fields(value, fields(), extension))


def _fields(value: JSON, fields: _Fields, extension: int = 0) -> bytes:
    parts = [
        write(number, value[name])
        for name, (number, write) in fields.items()
        if value.get(name) not in (None, "")
    ]
    if extension:
        extra = {name: each for name, each in value.items() if name.startswith("x-")}
        parts.append(_by_name(_any)(extension, extra))
    return b"".join(parts)


def _or_true(number: int, value: Any) -> bytes:
    """Write ``additionalProperties``: a schema, or a boolean."""
    inner = _integer(2, value) if isinstance(value, bool) else _SCHEMA(1, value)
    return _bytes(number, inner)


_SCHEMA: Final = _message(lambda: _SCHEMA_FIELDS, extension=31)
_SCHEMA_FIELDS: Final[_Fields] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _integer),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _integer),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _each(_text)),
    "enum": (20, _each(_any)),
    "additionalProperties": (21, _or_true),
    "type": (22, _inside(1, _text)),
    "items": (23, _inside(1, _SCHEMA)),
    "allOf": (24, _each(_SCHEMA)),
    "properties": (25, _inside(1, _by_name(_SCHEMA))),
}
_PARAMETER: Final[_Fields] = {
    "in": (2, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (20, _integer),
}
# A parameter, not of the body, in the query.
_PARAMETERS: Final = _each(_inside(1, _inside(2, _inside(3, _message(lambda: _PARAMETER)))))
_RESPONSE: Final[_Fields] = {"description": (1, _text), "schema": (2, _inside(1, _SCHEMA))}
_OPERATION: Final[_Fields] = {
    "parameters": (8, _PARAMETERS),
    "responses": (9, _inside(1, _by_name(_inside(1, _message(lambda: _RESPONSE))))),
}
_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_PATH: Final[_Fields] = {
    name: (number, _message(lambda: _OPERATION, extension=13)) for name, number in _METHODS.items()
}
_INFO: Final[_Fields] = {"title": (1, _text), "version": (2, _text)}
_DOCUMENT: Final[_Fields] = {
    "swagger": (1, _text),
    "info": (2, _message(lambda: _INFO)),
    "paths": (8, _inside(2, _by_name(_message(lambda: _PATH)))),
    "definitions": (9, _inside(1, _by_name(_SCHEMA))),
}
