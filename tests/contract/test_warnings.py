"""Unknown and duplicate fields, which become warnings unless a client asks for more or less."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.field_managers import APPLY
from tests.contract.objects import config_map, pod
from tests.local.apiserver.raw_client import JSON_PATCH, MERGE, STRATEGIC

YAML = "application/yaml"
UNKNOWN_FOO = '299 - "unknown field \\"foo\\""'
UNKNOWN_ZZ = '299 - "unknown field \\"spec.zz\\""'


@pytest.mark.parametrize("validation", [{}, {"fieldValidation": "Warn"}])
async def test_unknown_fields_of_a_new_object_are_warned_of(
    api: Api, validation: dict[str, str]
) -> None:
    body = pod(xx=1)
    body["spec"]["containers"][0]["imag"] = "mxnet"
    answer = await api.post(api.path("pods"), body, **validation)
    assert answer.code == 201
    assert sorted(answer.warnings) == [
        '299 - "unknown field \\"spec.containers[0].imag\\""',
        '299 - "unknown field \\"spec.xx\\""',
    ]


async def test_unknown_fields_of_a_new_custom_object_are_warned_of(gadget_api: Api) -> None:
    body = gadget(zz=1, meta={"foo": 1}) | {"extra": 1}
    answer = await gadget_api.post(gadget_api.path("gadgets", group=V1), body)
    assert answer.code == 201
    assert answer.warnings == (
        '299 - "unknown field \\"metadata.foo\\""',
        '299 - "unknown field \\"extra\\""',
        UNKNOWN_ZZ,
    )


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        pytest.param(MERGE, {"foo": 1}, id="merge"),
        pytest.param(STRATEGIC, {"foo": 1}, id="strategic"),
        pytest.param(JSON_PATCH, [{"op": "add", "path": "/foo", "value": 1}], id="JSON"),
    ],
)
async def test_unknown_field_of_a_patch_is_warned_of(api: Api, type_: str, patch: Any) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), patch, type_)
    assert (answer.code, answer.warnings) == (200, (UNKNOWN_FOO,))


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        pytest.param(MERGE, {"spec": {"zz": 1}}, id="merge"),
        pytest.param(JSON_PATCH, [{"op": "add", "path": "/spec/zz", "value": 1}], id="JSON"),
    ],
)
async def test_unknown_field_of_a_patch_of_a_custom_object_is_warned_of(
    gadget_api: Api, type_: str, patch: Any
) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget())
    answer = await gadget_api.patch(gadget_api.path("gadgets", "a", group=V1), patch, type_)
    assert (answer.code, answer.warnings) == (200, (UNKNOWN_ZZ,))


async def test_patch_of_a_status_warns_of_unknown_fields_outside_of_it_too(
    gadget_api: Api,
) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget())
    answer = await gadget_api.patch(
        gadget_api.path("gadgets", "a/status", group=V1), {"spec": {"zz": 1}, "status": {"xx": 1}}
    )
    expected = (UNKNOWN_ZZ, '299 - "unknown field \\"status.xx\\""')
    assert (answer.code, answer.warnings) == (200, expected)


async def test_unknown_field_of_an_update_is_warned_of(api: Api) -> None:
    created = await api.create(api.path("configmaps"), config_map())
    answer = await api.put(api.path("configmaps", "a"), {**created, "foo": 1})
    assert (answer.code, answer.warnings) == (200, (UNKNOWN_FOO,))


async def test_rejected_object_has_warnings_too(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), config_map("A") | {"foo": 1})
    assert (answer.code, answer.warnings) == (422, (UNKNOWN_FOO,))


@pytest.mark.parametrize(
    ("type_", "patch", "path"),
    [
        pytest.param(MERGE, b'{"data":{"a":"1","a":"2"}}', "data.a", id="merge"),
        pytest.param(STRATEGIC, b'{"data":{"a":"1","a":"2"}}', "data.a", id="strategic"),
        pytest.param(
            JSON_PATCH,
            b'[{"op":"add","path":"/data/a","value":"1","value":"2"}]',
            "[0].value",
            id="JSON",
        ),
    ],
)
async def test_duplicate_field_of_a_patch_is_warned_of(
    api: Api, type_: str, patch: bytes, path: str
) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), patch, type_)
    what = "json patch duplicate field" if type_ == JSON_PATCH else "duplicate field"
    assert (answer.code, answer.body["data"]["a"]) == (200, "2")
    assert answer.warnings == (f'299 - "{what} \\"{path}\\""',)


async def test_duplicate_field_is_warned_of_once(api: Api) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"a":"1","a":"2","a":"3"},"foo":1}'
    answer = await api.post(api.path("configmaps"), body)
    assert answer.warnings == ('299 - "duplicate field \\"data.a\\""', UNKNOWN_FOO)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b'"a":"1","b":"\\":"', (), id="quote in a value"),
        pytest.param(b'"a":"1","b":"\\u0022:"', (), id="escaped quote"),
        pytest.param(b'"a" : "1", "b":"\\":", "a"\n:"2"', ("data.a",), id="spaces"),
        pytest.param(b'"a":"1","b":"\\u0022:","a":"2"', ("data.a",), id="escape and duplicate"),
        pytest.param(b'"a":"1","\\u0061":"2"', ("data.a",), id="escaped name"),
        pytest.param(b'"a":"1","b":"\\"\\u003a","a":"2"', ("data.a",), id="escaped colon"),
    ],
)
async def test_duplicate_field_is_found_beside_escapes(
    api: Api, data: bytes, expected: tuple[str, ...]
) -> None:
    body = b'{"metadata":{"name":"a"},"data":{%b}}' % data
    answer = await api.post(api.path("configmaps"), body)
    assert answer.code == 201
    assert answer.warnings == tuple(f'299 - "duplicate field \\"{path}\\""' for path in expected)


DUPLICATES = b"""\
metadata:
  name: a
data:
  a: "1"
  a: "2"
foo: 1
data:
  b: "3"
"""
FOUND = (
    '299 - "line 5: key \\"a\\" already set in map"',
    '299 - "line 8: key \\"data\\" already set in map"',
)


async def test_duplicate_field_in_yaml_is_warned_of_by_its_line(api: Api) -> None:
    answer = await api.call("POST", api.path("configmaps"), DUPLICATES, type_=YAML)
    assert (answer.code, answer.body["data"]) == (201, {"b": "3"})
    assert answer.warnings == (*FOUND, UNKNOWN_FOO)


async def test_keys_in_yaml_differ_by_their_types(api: Api) -> None:
    body = """\
metadata:
  name: a
  labels: &labels {a: "1", \u00e9: "2"}
  annotations:
    <<: *labels
    a: "3"
data: {1: a, "1": b, 1: c}
"""
    answer = await api.call("POST", api.path("configmaps"), body.encode(), type_=YAML)
    assert answer.warnings == (
        '299 - "line 6: key \\"a\\" already set in map"',
        '299 - "line 7: key 1 already set in map"',
    )


async def test_strict_object_in_yaml_with_a_duplicate_field_is_rejected(api: Api) -> None:
    answer = await api.call(
        "POST", api.path("configmaps"), DUPLICATES, type_=YAML, fieldValidation="Strict"
    )
    assert answer.code == 400
    assert answer.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: '
        'unmarshal errors:\n  line 5: key "a" already set in map\n  line 8: key "data" already '
        'set in map, unknown field "foo"'
    )


HEAD = b"apiVersion: v1\nkind: ConfigMap\n"
APPLIED = [
    pytest.param(
        HEAD + b'metadata:\n  name: a\ndata:\n  a: "1"\n  a: "2"\ndata:\n  b: "3"\n',
        {"b": "3"},
        ('line 7: key "a" already set in map', 'line 9: key "data" already set in map'),
        id="YAML",
    ),
    pytest.param(
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},\n'
        b'"data":{"a":"1","a":"2"}}',
        {"a": "2"},
        ('line 2: key "a" already set in map',),
        id="JSON",
    ),
]


@pytest.mark.parametrize("exists", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize(("body", "data", "found"), APPLIED)
async def test_duplicate_field_of_a_configuration_is_warned_of(
    api: Api, body: bytes, data: JSON, found: tuple[str, ...], exists: bool
) -> None:
    if exists:
        await api.create(api.path("configmaps"), config_map(data={}))
    answer = await api.patch(api.path("configmaps", "a"), body, APPLY, fieldManager="me")
    assert (answer.code, answer.body["data"]) == (200 if exists else 201, data)
    texts = (each.replace('"', '\\"') for each in found)
    assert answer.warnings == tuple(f'299 - "{each}"' for each in texts)


@pytest.mark.parametrize("exists", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize(("body", "data", "found"), APPLIED)
async def test_strict_configuration_with_a_duplicate_field_is_rejected(
    api: Api, body: bytes, data: JSON, found: tuple[str, ...], exists: bool
) -> None:
    if exists:
        await api.create(api.path("configmaps"), config_map(data=data))
    answer = await api.patch(
        api.path("configmaps", "a"), body, APPLY, fieldManager="me", fieldValidation="Strict"
    )
    assert (answer.code, answer.warnings) == (400, ())
    assert answer.body["message"] == "\n  ".join(
        [
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:",
            *found,
        ]
    )


async def test_error_of_an_apply_comes_before_duplicate_fields(api: Api) -> None:
    body = HEAD + b'metadata:\n  name: a\ndata:\n  a: "1"\n  a: "2"\nfoo: 1\n'
    answer = await api.patch(
        api.path("configmaps", "a"), body, APPLY, fieldManager="me", fieldValidation="Strict"
    )
    assert answer.body["message"].endswith(".foo: field not declared in schema")


async def test_duplicate_field_of_a_configuration_can_be_ignored(api: Api) -> None:
    body = HEAD + b'metadata:\n  name: a\ndata:\n  a: "1"\n  a: "2"\n'
    answer = await api.patch(
        api.path("configmaps", "a"), body, APPLY, fieldManager="me", fieldValidation="Ignore"
    )
    assert (answer.code, answer.warnings) == (201, ())


async def test_strict_patch_with_a_duplicate_field_is_rejected(api: Api) -> None:
    await api.create(api.path("configmaps"), config_map())
    patch = b'{"foo":1,"data":{"a":"1","a":"2"}}'
    path = api.path("configmaps", "a")
    answer = await api.patch(path, patch, MERGE, fieldValidation="Strict")
    assert api.failure_text(answer) == (
        '422 Invalid: [FieldValueInvalid patch]  "" is invalid: patch: Invalid value: OBJECT: '
        'strict decoding error: duplicate field "data.a", unknown field "foo"'
    )
    assert answer.warnings == ()


async def test_nothing_is_warned_of_if_a_client_ignores_fields(api: Api) -> None:
    body = b'{"metadata":{"name":"a"},"foo":1,"data":{"a":"1","a":"2"}}'
    answer = await api.post(api.path("configmaps"), body, fieldValidation="Ignore")
    assert (answer.code, answer.warnings) == (201, ())


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param('a"b', r"a\\\"b", id="quote"),
        pytest.param("a\\b", r"a\\\\b", id="backslash"),
        pytest.param("a\nb", r"a\\nb", id="line"),
        pytest.param("a\x7fb", r"a\\x7fb", id="control character"),
        pytest.param("a\u2028b", r"a\\u2028b", id="line separator"),
    ],
)
async def test_field_name_in_a_warning_is_quoted(api: Api, name: str, shown: str) -> None:
    answer = await api.post(api.path("configmaps"), config_map() | {name: 1})
    assert answer.warnings == (f'299 - "unknown field \\"{shown}\\""',)


async def test_many_warnings_are_cut(api: Api) -> None:
    unknown: JSON = {f"f{index:03d}" + "x" * 300: 1 for index in range(50)}
    answer = await api.post(api.path("configmaps"), config_map() | unknown)
    shown = tuple(f'299 - "unknown field \\"{name[:241]}"' for name in unknown)
    assert (answer.code, answer.warnings) == (201, shown[:16])
