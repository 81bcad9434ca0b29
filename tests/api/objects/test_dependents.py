"""Existing dependents: their fields, and the memory of large ones."""

import tracemalloc

import msgspec

from dlctl.api.objects.dependents import DependentObject

_METRIC = {"type": "Pods", "pods": {"metric": {"name": "n"}, "target": {"averageValue": "1"}}}


def _decode(**fields: object) -> DependentObject:
    wire = {"metadata": {"name": "linear"}, **fields}
    return msgspec.json.decode(msgspec.json.encode(wire), type=DependentObject)


def test_spec_and_status_are_decoded_on_access() -> None:
    found = _decode(spec={"minMember": 2}, status={"phase": "Inqueue"})
    assert (found.decoded_spec(), found.decoded_status()) == (
        {"minMember": 2},
        {"phase": "Inqueue"},
    )


def test_absent_and_malformed_specs_are_empty() -> None:
    assert [_decode(**wire).decoded_spec() for wire in ({}, {"spec": None}, {"spec": [1]})] == [
        {}
    ] * 3
    wire = b'{"metadata":{"name":"a"},"spec":{"a":' + b"[" * 200 + b"]" * 200 + b"}}"
    assert msgspec.json.decode(wire, type=DependentObject).decoded_spec() == {}


def test_large_spec_and_status_take_no_memory() -> None:
    part = {"metrics": [_METRIC] * 9000}
    text = msgspec.json.encode({"metadata": {"name": "big"}, "spec": part, "status": part})
    tracemalloc.start()
    try:
        found = msgspec.json.decode(text, type=DependentObject)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.metadata.name == "big"
    assert (found.decoded_spec(), found.decoded_status()) == ({}, {})
    assert held_bytes < 10_000
