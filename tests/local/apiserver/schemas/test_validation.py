"""Validation and list types of structural schemas, on plain values."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.list_types import duplicates
from dlctl.local.apiserver.schemas.patterns import matches
from dlctl.local.apiserver.schemas.validation import validate
from tests.local.apiserver.definitions import under_spec


def messages(value: Any, schema: JSON, **options: Any) -> list[str]:
    return [f"{error.field}: {error.message}" for error in validate(value, schema, **options)]


def refusals(value: Any, field: JSON) -> list[str]:
    """Return the errors for ``spec.x`` with this value under this schema."""
    return messages({"spec": {"x": value}}, under_spec(x=field))


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        pytest.param(
            -1,
            {"type": "integer", "minimum": 0},
            "Invalid value: -1: spec.x in body should be greater than or equal to 0",
            id="minimum",
        ),
        pytest.param(
            5,
            {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
            "Invalid value: 5: spec.x in body should be less than 5",
            id="exclusive maximum",
        ),
        pytest.param(
            3,
            {"type": "number", "multipleOf": 2.0},
            "Invalid value: 3: spec.x in body should be a multiple of 2",
            id="multiple",
        ),
        pytest.param(
            3,
            {"type": "integer", "multipleOf": 0},
            "Invalid value: 0: factor MultipleOf declared for spec.x must be positive: 0",
            id="multiple of zero",
        ),
        pytest.param(
            "3",
            {"type": "integer"},
            'Invalid value: "string": spec.x in body must be of type integer: "string"',
            id="string for integer",
        ),
        pytest.param(
            3,
            {"type": "string"},
            'Invalid value: "integer": spec.x in body must be of type string: "integer"',
            id="integer for string",
        ),
        pytest.param(
            None,
            {"type": "string"},
            'Invalid value: "null": spec.x in body must be of type string: "null"',
            id="null",
        ),
        pytest.param(
            True,
            {"x-kubernetes-int-or-string": True},
            'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
            id="boolean for int or string",
        ),
        pytest.param(
            "green",
            {"type": "string", "enum": ["red", "blue"]},
            'Unsupported value: "green": supported values: "red", "blue"',
            id="enum",
        ),
        pytest.param(
            "abcdef",
            {"type": "string", "maxLength": 5},
            "Too long: may not be more than 5 bytes",
            id="too long",
        ),
        pytest.param(
            "",
            {"type": "string", "minLength": 1},
            'Invalid value: "": spec.x in body should be at least 1 chars long',
            id="too short",
        ),
        pytest.param(
            "A1",
            {"type": "string", "pattern": "^[a-z]+$"},
            "Invalid value: \"A1\": spec.x in body should match '^[a-z]+$'",
            id="pattern",
        ),
        pytest.param(
            "yesterday",
            {"type": "string", "format": "date-time"},
            'Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"',
            id="format",
        ),
        pytest.param(
            1,
            {"type": "string", "format": "date-time"},
            'Invalid value: "int64": spec.x in body must be of type date-time: "int64"',
            id="number with a format",
        ),
        pytest.param(
            {},
            {"type": "string", "format": "date-time"},
            'Invalid value: "": spec.x in body must be of type date-time: ""',
            id="object with a format",
        ),
        pytest.param(
            [],
            {"type": "string", "format": "nonsense"},
            'Invalid value: "array": spec.x in body must be of type string: "array"',
            id="list with an unknown format",
        ),
        pytest.param(
            ["x"],
            {"type": "string", "format": "date-time", "minItems": 1, "maxItems": 0},
            "Too many: 1: must have at most 0 items",
            id="list where no length is valid",
        ),
    ],
)
def test_invalid_scalar_is_rejected_with_kubernetes_message(
    value: Any, field: JSON, message: str
) -> None:
    assert refusals(value, field) == [f"spec.x: {message}"]


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        pytest.param(
            [],
            {"type": "array", "minItems": 1},
            "Invalid value: 0: spec.x in body should have at least 1 items",
            id="too few items",
        ),
        pytest.param(
            [1, 2],
            {"type": "array", "maxItems": 1},
            "Too many: 2: must have at most 1 item",
            id="too many items",
        ),
        pytest.param(
            {},
            {"type": "object", "minProperties": 1},
            "Invalid value: 0: spec.x in body should have at least 1 properties",
            id="too few properties",
        ),
        pytest.param(
            {"a": 1, "b": 2, "c": 3},
            {"type": "object", "maxProperties": 2},
            "Too many: 3: must have at most 2 items",
            id="too many properties",
        ),
    ],
)
def test_wrong_size_is_rejected(value: Any, field: JSON, message: str) -> None:
    assert refusals(value, field) == [f"spec.x: {message}"]


def test_missing_fields_are_required_where_they_belong() -> None:
    item = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    schema = {"type": "object", "required": ["spec"]} | under_spec(
        x={"type": "array", "items": item}
    )

    assert messages({}, schema) == ["spec: Required value"]
    assert messages({"spec": {"x": [{}]}}, schema) == ["spec.x[0].name: Required value"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        pytest.param(1.0, {"type": "integer"}, id="whole number for integer"),
        pytest.param(1, {"type": "number"}, id="integer for number"),
        pytest.param("8080", {"x-kubernetes-int-or-string": True}, id="string port"),
        pytest.param("a\u00e9", {"type": "string", "maxLength": 2}, id="characters, not bytes"),
        pytest.param("2026-01-02T03:04:05Z", {"type": "string", "format": "date-time"}, id="time"),
        pytest.param("1h30m", {"type": "string", "format": "nonsense"}, id="unknown format"),
        pytest.param(["x"], {"type": "string", "format": "date"}, id="list with a format"),
        pytest.param(None, {"type": "string", "nullable": True}, id="nullable"),
    ],
)
def test_valid_value_passes_its_schema(value: Any, field: JSON) -> None:
    assert refusals(value, field) == []


ONE_OF = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}


@pytest.mark.parametrize(
    ("value", "field", "first"),
    [
        pytest.param(
            {}, ONE_OF, '"spec.x" must validate one and only one schema (oneOf). Found none valid'
        ),
        pytest.param(
            {"a": 1, "b": 1},
            ONE_OF,
            '"spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        pytest.param(
            {},
            {"type": "object", "anyOf": [{"required": ["a"]}]},
            '"spec.x" must validate at least one schema (anyOf)',
        ),
        pytest.param(
            {"a": 1},
            {"type": "object", "not": {"required": ["a"]}},
            '"spec.x" must not validate the schema (not)',
        ),
    ],
)
def test_combined_schemas_are_rejected_as_a_whole(value: Any, field: JSON, first: str) -> None:
    assert refusals(value, field)[0] == f'<nil>: Invalid value: "": {first}'


def test_failed_all_of_says_which_part_failed() -> None:
    field = {"type": "integer", "allOf": [{"minimum": 0}, {"maximum": 3}]}

    assert refusals(5, field) == [
        "spec.x: Invalid value: 5: spec.x in body should be less than or equal to 3",
        '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)',
    ]


def test_unchanged_part_is_not_validated_again() -> None:
    schema = under_spec(x={"type": "integer", "maximum": 3}, y={"type": "string"})
    old = {"spec": {"x": 5, "y": "a"}}

    assert messages({"spec": {"x": 5, "y": "b"}}, schema, old=old) == []
    assert len(messages({"spec": {"x": 6, "y": "a"}}, schema, old=old)) == 1


def test_items_of_a_list_map_are_compared_with_those_of_the_same_key() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string"}, "n": {"maximum": 3}}}
    field = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    old = {"spec": {"x": [{"k": "a", "n": 9}]}}
    new = {"spec": {"x": [{"k": "b", "n": 9}, {"k": "a", "n": 9}]}}

    found = validate(new, under_spec(x=field), old=old)

    assert [error.field for error in found] == ["spec.x[0].n"]


def test_status_is_named_in_the_field_but_not_in_the_message() -> None:
    schema = {"type": "object", "properties": {"phase": {"type": "string"}}}

    assert messages({"phase": 1}, schema, under="status") == [
        'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"'
    ]


@pytest.mark.parametrize(
    ("value", "field", "found"),
    [
        pytest.param(
            ["a", "b", "a", "a"],
            {"x-kubernetes-list-type": "set"},
            ['spec.x[2]: Duplicate value: "a"'],
            id="set",
        ),
        pytest.param(
            [{"k": "a", "v": 1}, {"k": "a", "v": 2}],
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            ['spec.x[1]: Duplicate value: {"k":"a"}'],
            id="map",
        ),
        pytest.param(["a", "a"], {"x-kubernetes-list-type": "atomic"}, [], id="atomic"),
    ],
)
def test_duplicates_in_lists_are_found_by_their_type(
    value: Any, field: JSON, found: list[str]
) -> None:
    errors = duplicates({"spec": {"x": value}}, under_spec(x={"type": "array", **field}))

    assert [f"{error.field}: {error.message}" for error in errors] == found


def test_dollar_does_not_match_before_a_final_newline() -> None:
    assert matches("a", "^a$")
    assert not matches("a\n", "^a$")
    assert matches("$", "^[$]$")
    assert matches("abc", "^[[:alpha:]]+$")
