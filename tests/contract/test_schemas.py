"""Schema validation: types, bounds, formats, CEL rules."""

import pytest

from tests.contract.api import Api
from tests.contract.definitions import GROUP, V1, definition, gadget, version_of
from tests.contract.version_marks import FORMATS_OF_NUMBERS


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            gadget(size=-1),
            (
                '422 Invalid: [FieldValueInvalid spec.size] Gadget.contract.dlctl.dev "a"'
                " is invalid: spec.size: Invalid value: -1: spec.size in body should be "
                "greater than or equal to 0"
            ),
            id="below the minimum",
        ),
        pytest.param(
            gadget(size=101),
            (
                '422 Invalid: [FieldValueInvalid spec.size] Gadget.contract.dlctl.dev "a"'
                " is invalid: spec.size: Invalid value: 101: spec.size in body should be "
                "less than or equal to 100"
            ),
            id="above the maximum",
        ),
        pytest.param(
            gadget(size="x"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.size]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.size: Invalid "
                'value: "string": spec.size in body must be of type integer: "string"'
            ),
            id="text for a number",
        ),
        pytest.param(
            gadget(size=1.5),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.size]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: "": '
                "Checked value must be of type integer (default format) in spec.size, "
                "<nil>: Invalid value: null: some validation rules were not checked "
                "because the object was invalid; correct the existing errors to complete "
                'validation, spec.size: Invalid value: "number": spec.size in body must '
                'be of type integer: "number"'
            ),
            id="fraction for an integer",
            marks=FORMATS_OF_NUMBERS,
        ),
        pytest.param(
            gadget(size=1, ratio=-1234567.5),
            (
                '422 Invalid: [FieldValueInvalid spec.ratio] Gadget.contract.dlctl.dev "a"'
                " is invalid: spec.ratio: Invalid value: -1.2345675e+06: spec.ratio in body "
                "should be greater than 0"
            ),
            id="float with an exponent below the minimum",
        ),
        pytest.param(
            gadget(size=1, limits={"a": 2.0**53}),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.limits.a]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.limits.a: Invalid "
                'value: "number": spec.limits.a in body must be of type integer: "number"'
            ),
            id="float that is no exact integer",
        ),
        pytest.param(
            gadget(size=1, limits={"a": 2**63}),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.limits.a]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: "": Checked '
                "value must be of type integer (default format) in spec.limits.a, <nil>: Invalid "
                "value: null: some validation rules were not checked because the object was "
                "invalid; correct the existing errors to complete validation, spec.limits.a: "
                'Invalid value: "number": spec.limits.a in body must be of type integer: "number"'
            ),
            id="integer beyond 64 bits",
            marks=FORMATS_OF_NUMBERS,
        ),
        pytest.param(
            gadget(size=None),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueRequired spec.size] "
                'Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.size: Required "
                "value"
            ),
            id="null for a number",
        ),
        pytest.param(
            gadget(size=True),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.size]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.size: Invalid "
                'value: "boolean": spec.size in body must be of type integer: "boolean"'
            ),
            id="truth for a number",
        ),
        pytest.param(
            {"apiVersion": V1, "kind": "Gadget", "metadata": {"name": "a"}, "spec": {}},
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueRequired spec.size] "
                'Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.size: Required "
                "value"
            ),
            id="nothing required",
        ),
        pytest.param(
            gadget(color="green"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueNotSupported "
                'spec.color] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'spec.color: Unsupported value: "green": supported values: "red", "blue"'
            ),
            id="not in the enumeration",
        ),
        pytest.param(
            gadget(code="A1"),
            (
                '422 Invalid: [FieldValueInvalid spec.code] Gadget.contract.dlctl.dev "a"'
                ' is invalid: spec.code: Invalid value: "A1": spec.code in body should '
                "match '^[a-z]+$'"
            ),
            id="not matching",
        ),
        pytest.param(
            gadget(code="a"),
            (
                '422 Invalid: [FieldValueInvalid spec.code] Gadget.contract.dlctl.dev "a"'
                ' is invalid: spec.code: Invalid value: "a": spec.code in body should be '
                "at least 2 chars long"
            ),
            id="too short",
        ),
        pytest.param(
            gadget(code="abcde"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTooLong spec.code] "
                'Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.code: Too long:"
                " may not be more than 4 bytes"
            ),
            id="too long",
        ),
        pytest.param(
            gadget(when="x"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.when]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.when: Invalid "
                'value: "x": spec.when in body must be of type date-time: "x"'
            ),
            id="not of the format",
        ),
    ],
)
async def test_gadget_that_violates_its_schema_is_invalid(
    gadget_api: Api, body: object, said: str
) -> None:
    answer = await gadget_api.post(gadget_api.path("gadgets", group=V1), body)
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            gadget(ratio=0),
            (
                "422 Invalid: [FieldValueInvalid spec.ratio] Gadget.contract.dlctl.dev "
                '"a" is invalid: spec.ratio: Invalid value: 0: spec.ratio in body should '
                "be greater than 0"
            ),
            id="not above an exclusive minimum",
        ),
        pytest.param(
            gadget(amount=1.5),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid "
                'spec.amount] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'spec.amount: Invalid value: "number": spec.amount in body must be of '
                'type integer,string: "number"'
            ),
            id="fraction for integer or string",
        ),
        pytest.param(
            gadget(amount=[]),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid "
                'spec.amount] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'spec.amount: Invalid value: "array": spec.amount in body must be of type'
                ' integer,string: "array"'
            ),
            id="list for integer or string",
        ),
        pytest.param(
            gadget(tags=["a", "b", "c", "d"]),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTooMany spec.tags] "
                'Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.tags: Too many:"
                " 4: must have at most 3 items"
            ),
            id="too many items",
        ),
        pytest.param(
            gadget(tags=["a", "a"]),
            (
                "422 Invalid: [FieldValueDuplicate spec.tags[1]] "
                'Gadget.contract.dlctl.dev "a" is invalid: spec.tags[1]: Duplicate value:'
                ' "a"'
            ),
            id="set with a duplicate",
        ),
        pytest.param(
            gadget(tags=["abcdef"]),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTooLong spec.tags[0]] "
                'Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.tags[0]: Too "
                "long: may not be more than 5 bytes"
            ),
            id="item too long",
        ),
        pytest.param(
            gadget(tags="x"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid spec.tags]"
                ' Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid value: null: '
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation, spec.tags: Invalid "
                'value: "string": spec.tags in body must be of type array: "string"'
            ),
            id="text for a list",
        ),
        pytest.param(
            gadget(tags=[1]),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid "
                'spec.tags[0]] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'spec.tags[0]: Invalid value: "integer": spec.tags[0] in body must be of '
                'type string: "integer"'
            ),
            id="item of another type",
        ),
        pytest.param(
            gadget(ports=[{"name": "a"}, {"name": "a"}]),
            (
                "422 Invalid: [FieldValueDuplicate spec.ports[1]] "
                'Gadget.contract.dlctl.dev "a" is invalid: spec.ports[1]: Duplicate '
                "value: OBJECT"
            ),
            id="map list with a duplicate",
        ),
        pytest.param(
            gadget(ports=[{}]),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueRequired "
                'spec.ports[0].name] Gadget.contract.dlctl.dev "a" is invalid: <nil>: '
                "Invalid value: null: some validation rules were not checked because the "
                "object was invalid; correct the existing errors to complete validation, "
                "spec.ports[0].name: Required value"
            ),
            id="map list without its key",
        ),
        pytest.param(
            gadget(limits={"a": "x"}),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueTypeInvalid "
                'spec.limits.a] Gadget.contract.dlctl.dev "a" is invalid: <nil>: Invalid '
                "value: null: some validation rules were not checked because the object "
                "was invalid; correct the existing errors to complete validation, "
                'spec.limits.a: Invalid value: "string": spec.limits.a in body must be of'
                ' type integer: "string"'
            ),
            id="value of a map",
        ),
        pytest.param(
            gadget(size=-1, color="green"),
            (
                "422 Invalid: [FieldValueInvalid <nil>] [FieldValueInvalid spec.size] "
                '[FieldValueNotSupported spec.color] Gadget.contract.dlctl.dev "a" is '
                "invalid: <nil>: Invalid value: null: some validation rules were not "
                "checked because the object was invalid; correct the existing errors to "
                'complete validation, spec.color: Unsupported value: "green": supported '
                'values: "red", "blue", spec.size: Invalid value: -1: spec.size in body '
                "should be greater than or equal to 0"
            ),
            id="two fields",
        ),
    ],
)
async def test_container_that_violates_its_schema_is_invalid(
    gadget_api: Api, body: object, said: str
) -> None:
    answer = await gadget_api.post(gadget_api.path("gadgets", group=V1), body)
    assert gadget_api.failure_text(answer) == said


async def test_values_of_an_enumeration_are_shown_as_json(api: Api) -> None:
    allowed = ["a", None, True, 1, 1.5, [2]]
    of = {"x-kubernetes-preserve-unknown-fields": True, "nullable": True, "enum": allowed}
    schema = {"type": "object", "properties": {"of": of}}
    await api.define(definition("choices", versions=[version_of(schema)]))
    body = {"apiVersion": V1, "kind": "Choice", "metadata": {"name": "a"}}
    answer = await api.post(api.path("choices", group=V1), {**body, "of": "b"})
    assert api.failure_text(answer) == (
        f'422 Invalid: [FieldValueNotSupported of] Choice.{GROUP} "a" is invalid: of: Unsupported '
        'value: "b": supported values: "a", "null", "true", "1", "1.5", "[2]"'
    )
    # Not even if it is one of the values.
    answer = await api.post(api.path("choices", group=V1), {**body, "of": None})
    assert api.failure_text(answer) == (
        f'422 Invalid: [FieldValueNotSupported of] Choice.{GROUP} "a" is invalid: of: Unsupported '
        'value: null: supported values: "a", "null", "true", "1", "1.5", "[2]"'
    )
