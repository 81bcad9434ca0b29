"""CEL rules: their variables, when they apply, and their messages."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.cel_environment import CelError
from dlctl.local.apiserver.schemas.cel_rules import KEY, Rules
from dlctl.local.apiserver.schemas.cel_values import escape_name
from dlctl.local.apiserver.schemas.validation import ABSENT


def judged(value: Any, schema: JSON, old: Any = ABSENT) -> list[str]:
    return [f"{c.field}: {c.message}" for c in Rules.compile(schema).errors(value, old)]


def ruled(rule: str, properties: JSON | None = None, **more: Any) -> JSON:
    """Return the schema of an object whose ``spec`` has one rule."""
    spec = {
        "type": "object",
        "properties": properties or {"a": {"type": "integer"}, "b": {"type": "string"}},
        KEY: [{"rule": rule, **more}],
    }
    return {"type": "object", "properties": {"spec": spec}}


def test_satisfied_rule_has_no_message() -> None:
    assert judged({"spec": {"a": 2}}, ruled("self.a > 1")) == []


def test_failed_rule_without_a_message_is_quoted() -> None:
    found = judged({"spec": {"a": 1}}, ruled("self.a > 1 "))

    assert found == ["spec: Invalid value: failed rule: self.a > 1"]


def test_message_expression_beats_the_message() -> None:
    schema = ruled("self.a > 1", message="too few", messageExpression="'a is ' + string(self.a)")

    assert judged({"spec": {"a": 1}}, schema) == ["spec: Invalid value: a is 1"]


def test_message_is_used_when_its_expression_fails() -> None:
    schema = ruled("self.a > 1", message="too few", messageExpression="self.b")

    assert judged({"spec": {"a": 1}}, schema) == ["spec: Invalid value: too few"]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        pytest.param("FieldValueForbidden", "Forbidden: no"),
        pytest.param("FieldValueRequired", "Required value: no"),
        pytest.param("FieldValueDuplicate", "Duplicate value"),
        pytest.param("FieldValueInvalid", "Invalid value: no"),
    ],
)
def test_reason_determines_the_message(reason: str, said: str) -> None:
    schema = ruled("false", message="no", reason=reason, fieldPath=".a")

    errors = list(Rules.compile(schema).errors({"spec": {"a": 1}}))

    assert [(c.field, c.message, c.reason) for c in errors] == [("spec.a", said, reason)]


def test_scalar_is_shown_and_object_is_not() -> None:
    field = {"type": "integer", KEY: [{"rule": "self > 1", "message": "no"}]}
    schema = {"type": "object", "properties": {"a": field}}

    assert judged({"a": 1}, schema) == ["a: Invalid value: 1: no"]


def test_rules_apply_to_items_and_map_values() -> None:
    rule = {KEY: [{"rule": "self.n > 0", "message": "no"}]}
    item = {"type": "object", "properties": {"n": {"type": "integer"}}, **rule}
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": item},
            "map": {"type": "object", "additionalProperties": item},
        },
    }
    value = {"list": [{"n": 1}, {"n": 0}], "map": {"x": {"n": 0}}}

    assert judged(value, schema) == ["list[1]: Invalid value: no", "map[x]: Invalid value: no"]


def test_transition_rule_needs_an_old_value() -> None:
    schema = ruled("self.a == oldSelf.a", message="immutable")

    assert judged({"spec": {"a": 1}}, schema) == []
    assert judged({"spec": {"a": 1}}, schema, {"spec": {"a": 1}}) == []
    assert judged({"spec": {"a": 2}}, schema, {"spec": {"a": 1}}) == [
        "spec: Invalid value: immutable"
    ]


def test_optional_old_self_rule_applies_without_an_old_value() -> None:
    rule = "oldSelf.hasValue() ? self.a >= oldSelf.value().a : self.a == 0"
    schema = ruled(rule, message="begins at 0 and grows", optionalOldSelf=True)

    assert judged({"spec": {"a": 0}}, schema) == []
    assert len(judged({"spec": {"a": 1}}, schema)) == 1
    assert judged({"spec": {"a": 2}}, schema, {"spec": {"a": 1}}) == []
    assert len(judged({"spec": {"a": 1}}, schema, {"spec": {"a": 2}})) == 1


def test_unchanged_value_is_exempt_from_non_transition_rules() -> None:
    old = {"spec": {"a": 0}}

    assert judged({"spec": {"a": 0}}, ruled("self.a > 1"), old) == []


def test_rule_sees_only_what_the_schema_declares() -> None:
    value = {"spec": {"a": 1, "secret": 2}}

    assert judged(value, ruled("!has(self.secret)")) == []


def test_root_rule_sees_name_and_kind_and_no_other_metadata() -> None:
    schema = {
        "type": "object",
        "properties": {"metadata": {"type": "object"}},
        KEY: [{"rule": "self.metadata.name == 'a' && self.kind == 'W' && !has(self.metadata.uid)"}],
    }

    assert judged({"kind": "W", "metadata": {"name": "a", "uid": "u"}}, schema) == []


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        pytest.param("plain", "plain"),
        pytest.param("my-field", "my__dash__field"),
        pytest.param("a.b/c", "a__dot__b__slash__c"),
        pytest.param("a__b", "a__underscores__b"),
        pytest.param("namespace", "__namespace__"),
        pytest.param("a b", None),
    ],
)
def test_field_names_are_escaped_for_rules(name: str, spelt: str | None) -> None:
    assert escape_name(name) == spelt


def test_rule_can_use_kubernetes_functions() -> None:
    numbers = {"l": {"type": "array", "items": {"type": "integer"}}, "s": {"type": "string"}}
    rule = "self.l.isSorted() && self.l.sum() == 3 && self.s.find('[0-9]+') == '12'"

    assert judged({"spec": {"l": [1, 2], "s": "a12b"}}, ruled(rule, numbers)) == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param("self.a > 1", "no such key: a evaluating rule: self.a > 1", id="missing"),
        pytest.param(
            "[1][5] == 1", "index out of bounds: 5 evaluating rule: [1][5] == 1", id="index"
        ),
        pytest.param(
            "1 / size(self) == 1", "division by zero evaluating rule: 1 / size(self) == 1"
        ),
    ],
)
def test_evaluation_error_has_the_message_of_cel_go(rule: str, said: str) -> None:
    assert judged({"spec": {}}, ruled(rule)) == [f'spec: Invalid value: "object": {said}']


@pytest.mark.parametrize("rule", ["self.a >", "nobody.a == 1", "self.a.whatever()"])
def test_invalid_cel_does_not_compile(rule: str) -> None:
    with pytest.raises(CelError):
        Rules.compile(ruled(rule))


def test_old_self_in_a_string_makes_no_transition_rule() -> None:
    assert len(judged({"spec": {"b": "x"}}, ruled("self.b == 'oldSelf'"))) == 1


def test_schema_without_rules_costs_nothing() -> None:
    assert not Rules.compile({"type": "object", "properties": {"a": {"type": "object"}}})


@pytest.mark.parametrize(
    ("rule", "field", "problem"),
    [
        pytest.param("self.a > 1", {"type": "integer"}, "expected int, got float64", id="integer"),
        pytest.param(
            "self.a != 1",
            {"x-kubernetes-int-or-string": True},
            "expected XIntOrString value to be either a string or integer",
            id="integer or string",
        ),
    ],
)
def test_rule_reads_no_float_as_an_integer(rule: str, field: JSON, problem: str) -> None:
    found = judged({"spec": {"a": 3.0}}, ruled(rule, {"a": field}))

    assert found == [
        f'spec: Invalid value: "object": invalid data, {problem} evaluating rule: {rule}'
    ]


def test_rule_on_an_integer_reads_no_float() -> None:
    field = {"type": "integer", KEY: [{"rule": "self > 1", "message": "too few"}]}

    found = judged({"a": 3.0}, {"type": "object", "properties": {"a": field}})

    problem = "invalid data, expected int, got float64 evaluating rule: too few"
    assert found == [f'a: Invalid value: "integer": {problem}']


def test_float_in_a_field_that_the_rule_does_not_read_is_accepted() -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "integer"}}

    assert judged({"spec": {"a": 3.0, "b": 1}}, ruled("self.b == 1", properties)) == []


@pytest.mark.parametrize("rule", ["!(has(self.b) && has(self.a))", "!has(self.c.a)"])
def test_float_whose_presence_alone_the_rule_checks_is_accepted(rule: str) -> None:
    whole = {"type": "integer"}
    properties = {"a": whole, "b": whole, "c": {"type": "object", "properties": {"b": whole}}}

    assert judged({"spec": {"a": 3.0, "c": {"b": 3.0}}}, ruled(rule, properties)) == []


def test_integer_in_a_number_field_is_read() -> None:
    assert judged({"spec": {"a": 3.0}}, ruled("self.a > 1.0", {"a": {"type": "number"}})) == []


@pytest.mark.parametrize("function", ["find(P) == ''", "findAll(P) == []"])
def test_time_of_a_regular_expression_is_linear(function: str) -> None:
    pattern = "'^(a+)+$'"
    schema = ruled(f"self.b.{function.replace('P', pattern)}")

    assert judged({"spec": {"b": "a" * 5000 + "!"}}, schema) == []


def test_invalid_regular_expression_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    (found,) = judged({"spec": {"b": "x"}}, ruled("self.b.find('[') == ''"))

    assert "Illegal regex: missing ]: [ evaluating rule: " in found
    assert capfd.readouterr().err == ""


def test_regular_expression_finds_the_whole_match() -> None:
    assert judged({"spec": {"b": "x12y"}}, ruled("self.b.find('([0-9])+') == '12'")) == []
    rule = "self.b.findAll('([0-9])') == ['1', '2']"
    assert judged({"spec": {"b": "1x2"}}, ruled(rule)) == []
