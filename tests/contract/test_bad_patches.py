"""Malformed and inapplicable patches."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map
from tests.contract.version_marks import REPLACED_BY_A_NUMBER
from tests.local.apiserver.raw_client import JSON_PATCH, MERGE, STRATEGIC


@pytest.mark.parametrize(
    ("type_", "patch", "said"),
    [
        pytest.param(
            MERGE,
            b"{",
            "400 BadRequest: error decoding patch: unexpected end of JSON input",
            id="truncated",
        ),
        pytest.param(
            MERGE,
            b"",
            "400 BadRequest: error decoding patch: unexpected end of JSON input",
            id="empty",
        ),
        pytest.param(
            MERGE,
            [],
            (
                "400 BadRequest: error decoding patch: json: cannot unmarshal array into "
                "Go value of type map[string]interface {}"
            ),
            id="list",
        ),
        pytest.param(
            MERGE,
            "x",
            (
                "400 BadRequest: error decoding patch: json: cannot unmarshal string into"
                " Go value of type map[string]interface {}"
            ),
            id="text",
        ),
        pytest.param(MERGE, b"null", "400 BadRequest: Invalid JSON Patch", id="null"),
        pytest.param(
            JSON_PATCH,
            b"{",
            "400 BadRequest: error decoding patch: unexpected end of JSON input",
            id="truncated operations",
        ),
        pytest.param(
            JSON_PATCH,
            {},
            (
                "400 BadRequest: error decoding patch: json: cannot unmarshal object into"
                " Go value of type []handlers.jsonPatchOp"
            ),
            id="object for operations",
        ),
        pytest.param(
            STRATEGIC,
            b"{",
            "400 BadRequest: unexpected end of JSON input",
            id="truncated strategic",
        ),
        pytest.param(
            STRATEGIC,
            [],
            (
                "400 BadRequest: json: cannot unmarshal array into Go value of type "
                "map[string]interface {}"
            ),
            id="strategic list",
        ),
        pytest.param(
            "application/json",
            {},
            "415 UnsupportedMediaType: 415: Unsupported Media Type",
            id="plain JSON",
        ),
        pytest.param(
            STRATEGIC,
            {"metadata": {"$patch": "foo"}},
            "500 : unknown patch type: foo in map: map[$patch:foo]",
            id="unknown directive",
        ),
    ],
)
async def test_malformed_patch_is_a_bad_request(
    api: Api, type_: str, patch: object, said: str
) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), patch, type_)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param(
            {"data": "x"},
            (
                '422 Invalid: [FieldValueInvalid patch]  "" is invalid: patch: Invalid '
                "value: OBJECT: json: cannot unmarshal string into Go struct field "
                "ConfigMap.data of type map[string]string"
            ),
            id="type",
        ),
        pytest.param(
            {"data": {"a": 1}},
            (
                '422 Invalid: [FieldValueInvalid patch]  "" is invalid: patch: Invalid '
                "value: OBJECT: json: cannot unmarshal number into Go struct field "
                "ConfigMap.data of type string"
            ),
            id="type of an item",
        ),
        pytest.param(
            {"foo": 1},
            (
                '422 Invalid: [FieldValueInvalid patch]  "" is invalid: patch: Invalid '
                'value: OBJECT: strict decoding error: unknown field "foo"'
            ),
            id="unknown field",
        ),
        pytest.param(
            {"apiVersion": "v2"},
            (
                '422 Invalid: [FieldValueInvalid patch]  "" is invalid: patch: Invalid '
                'value: OBJECT: no kind "ConfigMap" is registered for version "v2"'
            ),
            id="version",
        ),
    ],
)
async def test_patch_with_an_undecodable_result_is_invalid(
    api: Api, patch: object, said: str
) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), patch, fieldValidation="Strict")
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param(
            {"spec": {"zz": 1}},
            (
                '422 Invalid: [FieldValueInvalid patch]  "" is invalid: patch: Invalid '
                'value: OBJECT: strict decoding error: unknown field "spec.zz"'
            ),
            id="unknown field",
        ),
        pytest.param(
            {"kind": "Secret"},
            (
                '422 Invalid: [FieldValueInvalid kind] Secret.contract.dlctl.dev "a" is '
                'invalid: kind: Invalid value: "Secret": must be Gadget'
            ),
            id="kind",
        ),
        pytest.param(
            {"metadata": {"uid": "x"}},
            (
                "422 Invalid: [FieldValueInvalid metadata.uid] Gadget.contract.dlctl.dev "
                '"a" is invalid: metadata.uid: Invalid value: "x": field is immutable'
            ),
            id="uid",
        ),
        pytest.param(
            {"metadata": {"resourceVersion": "1"}},
            (
                "409 Conflict: Operation cannot be fulfilled on "
                'gadgets.contract.dlctl.dev "a": the object has been modified; please '
                "apply your changes to the latest version and try again"
            ),
            id="old version",
        ),
        pytest.param(
            {"metadata": {"name": "b"}},
            ("400 BadRequest: the name of the object (b) does not match the name on the URL (a)"),
            id="name",
        ),
    ],
)
async def test_patch_that_violates_the_schema_is_rejected(
    gadget_api: Api, patch: object, said: str
) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget())
    answer = await gadget_api.patch(
        gadget_api.path("gadgets", "a", group=V1), patch, fieldValidation="Strict"
    )
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param(
            {"op": "foo", "path": "/data/k"},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="unknown",
        ),
        pytest.param(
            {"op": "add", "value": 1},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="no path",
        ),
        pytest.param(
            {"op": "remove", "path": "/data/zz"},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="remove of nothing",
        ),
        pytest.param(
            {"op": "test", "path": "/data/k", "value": "no"},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="test of another value",
        ),
        pytest.param(
            {"op": "test", "path": "/data/zz", "value": "1"},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="test of nothing",
        ),
        pytest.param(
            {"op": "add", "path": "/a/b", "value": "2"},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="add in nothing",
        ),
        pytest.param(
            {"op": "move", "from": "/data/zz", "path": "/data/z"},
            ("422 Invalid: the server rejected our request due to an error in our request"),
            id="move of nothing",
        ),
        *(
            pytest.param(
                operation,
                "422 Invalid: the server rejected our request due to an error in our request",
                id=f"{operation['op']} of all",
            )
            for operation in (
                {"op": "add", "path": "", "value": {}},
                {"op": "remove", "path": ""},
                {"op": "copy", "from": "/data", "path": ""},
                {"op": "move", "from": "/data", "path": ""},
            )
        ),
        pytest.param(
            {"op": "replace", "path": "", "value": 1},
            "422 Invalid: the server rejected our request due to an error in our request",
            id="all replaced by a number",
            marks=REPLACED_BY_A_NUMBER,
        ),
        pytest.param(
            {"op": "copy", "path": "/data/x"},
            "422 Invalid: the server rejected our request due to an error in our request",
            id="copy from nowhere",
        ),
        pytest.param(
            {"op": "replace", "path": "", "value": {}},
            (
                "400 BadRequest: the name of the object (a based on URL) was "
                "undeterminable: name must be provided"
            ),
            id="all replaced",
        ),
    ],
)
async def test_inapplicable_operation_is_unprocessable(api: Api, patch: object, said: str) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), [patch], JSON_PATCH)
    assert api.failure_text(answer) == said


async def test_copies_in_one_patch_are_limited(api: Api) -> None:
    await api.create(api.path("configmaps"), config_map())
    operations: list[JSON] = [{"op": "add", "path": "/data/k", "value": "x" * 1_100_000}]
    operations += [{"op": "copy", "from": "/data/k", "path": "/data/x"}] * 3
    answer = await api.patch(api.path("configmaps", "a"), operations, JSON_PATCH)
    assert api.failure_text(answer) == (
        "422 Invalid: the server rejected our request due to an error in our request"
    )


@pytest.mark.parametrize("value", [True, 1.5, "1"])
async def test_json_patch_distinguishes_numbers_from_strings(
    gadget_api: Api, value: object
) -> None:
    gadgets = gadget_api.path("gadgets", group=V1)
    generation = {"op": "test", "path": "/metadata/generation"}
    await gadget_api.create(gadgets, gadget())
    same = await gadget_api.patch(f"{gadgets}/a", [{**generation, "value": 1}], JSON_PATCH)
    other = await gadget_api.patch(f"{gadgets}/a", [{**generation, "value": value}], JSON_PATCH)
    assert (same.code, other.code) == (200, 422)
