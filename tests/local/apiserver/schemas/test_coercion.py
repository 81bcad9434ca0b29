"""Pruning, defaults and nulls of structural schemas, on plain values."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.coercion import PRESERVE, drop_nulls, fill_defaults, prune
from tests.local.apiserver.definitions import under_spec


def test_unknown_fields_are_pruned_and_named() -> None:
    schema = under_spec(known={"type": "string"}, items={"type": "array", "items": under_spec()})
    obj = {
        "kind": "W",
        "metadata": {"any": 1},
        "spec": {"known": "a", "bad": 1, "items": [{"b": 2}]},
    }

    unknown = prune(obj, schema)

    assert unknown == ["spec.bad", "spec.items[0].b"]
    assert obj == {"kind": "W", "metadata": {"any": 1}, "spec": {"known": "a", "items": [{}]}}


def test_pruning_stops_at_preserved_fields_and_continues_below_known_ones() -> None:
    free = {"type": "object", PRESERVE: True, "properties": {"strict": {"type": "object"}}}
    obj = {"spec": {"free": {"any": {"deep": [{"x": 1}]}, "strict": {"bad": 1}}}}

    assert prune(obj, under_spec(free=free)) == ["spec.free.strict.bad"]
    assert obj["spec"]["free"] == {"any": {"deep": [{"x": 1}]}, "strict": {}}


def test_pruning_keeps_entries_of_maps_and_type_of_embedded_resources() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    obj = {"spec": {"labels": {"a": "b"}, "pod": {"kind": "P", "metadata": {}, "bad": 1}}}

    assert prune(obj, under_spec(labels=labels, pod=embedded)) == ["spec.pod.bad"]
    assert obj["spec"] == {"labels": {"a": "b"}, "pod": {"kind": "P", "metadata": {}}}


def test_defaults_fill_absent_fields_also_inside_defaults() -> None:
    schema = under_spec(
        a={"type": "integer", "default": 3},
        b={
            "type": "object",
            "default": {},
            "properties": {"c": {"type": "string", "default": "x"}},
        },
    )
    obj: JSON = {"spec": {}}

    fill_defaults(obj, schema)

    assert obj == {"spec": {"a": 3, "b": {"c": "x"}}}


@pytest.mark.parametrize(
    ("field", "result"),
    [
        pytest.param({"type": "string"}, {}, id="not nullable: dropped"),
        pytest.param({"type": "string", "nullable": True}, {"x": None}, id="nullable: kept"),
        pytest.param({"type": "string", "default": "d"}, {"x": "d"}, id="with a default: replaced"),
        pytest.param(
            {"type": "string", "default": "d", "nullable": True}, {"x": None}, id="both: kept"
        ),
    ],
)
def test_null_is_defaulted_or_dropped_by_the_schema(field: JSON, result: JSON) -> None:
    obj: JSON = {"spec": {"x": None}}

    drop_nulls(obj, under_spec(x=field))
    fill_defaults(obj, under_spec(x=field))

    assert obj["spec"] == result


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abcd"), below),
    max_leaves=10,
)
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string", "default": "x"}}},
        "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"default": 1}}}},
        "c": {"type": "object", PRESERVE: True},
    },
}


def coerced(obj: JSON) -> JSON:
    result = copy.deepcopy(obj)
    prune(result, SCHEMA)
    drop_nulls(result, SCHEMA)
    fill_defaults(result, SCHEMA)
    return result


@given(st.dictionaries(st.sampled_from("abcd"), JSON_VALUES))
def test_coercing_twice_changes_nothing(obj: JSON) -> None:
    once = coerced(obj)

    assert coerced(once) == once
