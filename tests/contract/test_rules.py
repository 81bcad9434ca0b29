"""CEL rules on creation, change and status."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.version_marks import VALUE_BEHIND_A_RULE


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            gadget(size=7),
            (
                '422 Invalid: [FieldValueInvalid spec] Gadget.contract.dlctl.dev "a" is '
                "invalid: spec: Invalid value: not seven"
            ),
            id="message",
        ),
        pytest.param(
            gadget(size=8),
            (
                '422 Invalid: [FieldValueInvalid spec] Gadget.contract.dlctl.dev "a" is '
                "invalid: spec: Invalid value: failed rule: self.size != 8"
            ),
            id="no message",
        ),
        pytest.param(
            gadget(size=9),
            (
                "422 Invalid: [FieldValueForbidden spec.size] Gadget.contract.dlctl.dev "
                '"a" is invalid: spec.size: Forbidden: not nine'
            ),
            id="message expression, field path and reason",
        ),
        pytest.param(
            gadget(size=7, color="green"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueNotSupported "
                'spec.color] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'spec.color: Unsupported value: "green": supported values: "red", "blue"'
            ),
            id="unchecked for a wrong enumeration",
        ),
        pytest.param(
            gadget(size=7, code="A1"),
            (
                "422 Invalid: [FieldValueInvalid spec] [FieldValueInvalid spec.code] "
                'Gadget.contract.dlctl.dev "a" is invalid: spec.code: Invalid value: '
                "\"A1\": spec.code in body should match '^[a-z]+$', spec: Invalid value: "
                "not seven"
            ),
            id="beside a broken pattern",
        ),
    ],
)
async def test_rule_rejects_with_its_own_message(gadget_api: Api, body: object, said: str) -> None:
    answer = await gadget_api.post(gadget_api.path("gadgets", group=V1), body)
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"spec": {"size": 4}},
            (
                '422 Invalid: [FieldValueInvalid spec] Gadget.contract.dlctl.dev "a" is '
                "invalid: spec: Invalid value: may not shrink"
            ),
            id="transition",
        ),
        pytest.param(
            {"spec": {"fixed": "y"}},
            (
                "422 Invalid: [FieldValueInvalid spec.fixed] Gadget.contract.dlctl.dev "
                '"a" is invalid: spec.fixed: Invalid value: "y": field is immutable'
            ),
            id="immutable",
            marks=VALUE_BEHIND_A_RULE,
        ),
        pytest.param(
            {"spec": {"size": None}},
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueRequired spec.size] "
                'Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.size: Required "
                "value"
            ),
            id="required field removed",
        ),
        pytest.param(
            {"spec": {"size": -1}},
            (
                "422 Invalid: [FieldValueInvalid spec] [FieldValueInvalid spec.size] "
                'Gadget.contract.dlctl.dev "a" is invalid: spec.size: Invalid value: -1: '
                "spec.size in body should be greater than or equal to 0, spec: Invalid "
                "value: may not shrink"
            ),
            id="schema",
        ),
        pytest.param(
            {"spec": {"size": 7}},
            (
                '422 Invalid: [FieldValueInvalid spec] Gadget.contract.dlctl.dev "a" is '
                "invalid: spec: Invalid value: not seven"
            ),
            id="rule",
        ),
    ],
)
async def test_change_that_violates_a_rule_is_invalid(
    gadget_api: Api, change: JSON, said: str
) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget(size=5, fixed="x"))
    answer = await gadget_api.patch(gadget_api.path("gadgets", "a", group=V1), change)
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"status": {"phase": "Nope"}},
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueNotSupported "
                'status.phase] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'status.phase: Unsupported value: "Nope": supported values: "Ready", '
                '"Failed"'
            ),
            id="enumeration",
        ),
    ],
)
async def test_status_that_violates_its_schema_is_invalid(
    gadget_api: Api, change: JSON, said: str
) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget())
    answer = await gadget_api.patch(gadget_api.path("gadgets", "a/status", group=V1), change)
    assert gadget_api.failure_text(answer) == said
