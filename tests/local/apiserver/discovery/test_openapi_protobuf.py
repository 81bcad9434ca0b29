"""OpenAPI v2 in protobuf: what a client that knows the field numbers reads."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from dlctl.local.apiserver.discovery.openapi_protobuf import encode
from tests.local.apiserver.definitions import definition
from tests.local.apiserver.raw_client import CRDS, RawClient

V2 = "application/com.github.proto-openapi.spec.v2"


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            yield number, varint()
            continue
        size = 8 if wire == 1 else varint()
        yield number, data[at : at + size]
        at += size


def inside(data: bytes, *numbers: int) -> list[Any]:
    """Return the values at a path of field numbers."""
    if not numbers:
        return [data]
    first, *rest = numbers
    return [
        leaf for number, each in fields(data) if number == first for leaf in inside(each, *rest)
    ]


@pytest.mark.parametrize("version", ["@v1.0", ".v1.0"])
async def test_document_of_all_kinds_is_sent_on_request(api: RawClient, version: str) -> None:
    await api.create(CRDS, definition())
    accept = {"Accept": f"{V2}{version}+protobuf"}
    async with api.session.get("/openapi/v2", headers=accept) as answer:
        body = await answer.read()

    # Go rejects the other spelling in a response.
    assert answer.headers["Content-Type"] == f"{V2}.v1.0+protobuf"
    definitions = {inside(each, 1)[0].decode(): inside(each, 2)[0] for each in inside(body, 9, 1)}
    extensions = {
        inside(each, 1)[0].decode(): json.loads(inside(each, 2, 2)[0])
        for each in inside(definitions["io.test.v1.Gadget"], 31)
    }
    assert extensions["x-kubernetes-group-version-kind"] == [
        {"group": "test.io", "version": "v1", "kind": "Gadget"}
    ]
    paths = [each.decode() for each in inside(body, 8, 2, 1)]
    assert "/apis/test.io/v1/namespaces/{namespace}/gadgets/{name}" in paths
    parameters = inside(body, 8, 2, 2, 8, 8, 1, 2, 3, 4)
    assert b"fieldValidation" in parameters


def test_values_of_every_type_are_encoded() -> None:
    schema = {
        "$ref": "#/definitions/b",
        "type": "object",
        "required": ["x", "y"],
        "minimum": 1.5,
        "minLength": 300,
        "maximum": 0,
        "enum": ["p", 2],
        "default": {"k": None},
        "items": {"type": "string"},
        "additionalProperties": False,
        "x-order": [1],
        "unknown": 1,
    }
    (data,) = inside(encode({"definitions": {"a": schema}}), 9, 1, 2)
    found = dict(fields(data))
    assert (found[1], inside(data, 22, 1), inside(data, 19)) == (
        b"#/definitions/b",
        [b"object"],
        [b"x", b"y"],
    )
    assert (struct.unpack("<d", found[9]), found[12]) == ((1.5,), 300)
    assert struct.unpack("<d", found[7]) == (0.0,)
    assert inside(data, 20, 2) == [b'"p"', b"2"]
    assert inside(data, 5, 2) == [b'{"k":null}']
    assert inside(data, 23, 1, 22, 1) == [b"string"]
    assert inside(data, 21, 2) == [0]
    assert (inside(data, 31, 1), inside(data, 31, 2, 2)) == ([b"x-order"], [b"[1]"])
    assert set(found) == {1, 5, 7, 9, 12, 19, 20, 21, 22, 23, 31}
