"""Bodies that are not objects of the resource, and invalid options."""

import pytest

from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            b"{",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: unexpected end "
                "of JSON input ({)"
            ),
            id="truncated",
        ),
        pytest.param(
            b"",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: unexpected end "
                "of JSON input (<empty>)"
            ),
            id="nothing",
        ),
        pytest.param(
            [],
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: json: cannot "
                "unmarshal array into Go value of type struct { APIVersion string "
                '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
                " (5b5d)"
            ),
            id="list",
        ),
        pytest.param(
            "x",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: json: cannot "
                "unmarshal string into Go value of type struct { APIVersion string "
                '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
                " (227822)"
            ),
            id="text",
        ),
        pytest.param(
            b"{x}",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: invalid "
                "character 'x' looking for beginning of object key string ({x})"
            ),
            id="no key",
        ),
        pytest.param(
            b'{"a":}',
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: invalid "
                "character '}' looking for beginning of value ({\"a\":})"
            ),
            id="no value",
        ),
        pytest.param(
            b"xx",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: invalid "
                "character 'x' looking for beginning of value (7878)"
            ),
            id="no JSON",
        ),
        pytest.param(
            b'{"metadata":{"name":"a"}} x',
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "ConfigMap): couldn't get version/kind; json parse error: invalid "
                'character \'x\' after top-level value ({"metadata":{"name":"a"}} x)'
            ),
            id="rubbish behind",
        ),
        pytest.param(
            {"metadata": "x"},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal string into Go struct field "
                "ConfigMap.metadata of type v1.ObjectMeta"
            ),
            id="metadata is text",
        ),
        pytest.param(
            {"metadata": {"name": "a"}, "data": "x"},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal string into Go struct field "
                "ConfigMap.data of type map[string]string"
            ),
            id="data is text",
        ),
        pytest.param(
            {"metadata": {"name": "a"}, "data": {"a": 1}},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal number into Go struct field "
                "ConfigMap.data of type string"
            ),
            id="number in data",
        ),
        pytest.param(
            config_map(data={"a b": "x"}),
            (
                '422 Invalid: [FieldValueInvalid data[a b]] ConfigMap "a" is invalid: '
                'data[a b]: Invalid value: "a b": a valid config key must consist of '
                "alphanumeric characters, '-', '_' or '.'"
            ),
            id="key of data",
        ),
    ],
)
async def test_malformed_body_is_a_bad_request(api: Api, body: object, said: str) -> None:
    answer = await api.post(api.path("configmaps"), body)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}},
            (
                '400 BadRequest: Secret in version "v1" cannot be handled as a ConfigMap:'
                " converting (v1.Secret) to (core.ConfigMap): unknown conversion"
            ),
            id="kind",
        ),
        pytest.param(
            {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "a"}},
            (
                '400 BadRequest: ConfigMap in version "v2" cannot be handled as a '
                'ConfigMap: no kind "ConfigMap" is registered for version "v2"'
            ),
            id="version",
        ),
        pytest.param(
            config_map(resourceVersion="1"),
            "500 : resourceVersion should not be set on objects to be created",
            id="version is set",
        ),
        pytest.param(
            config_map(namespace="other"),
            (
                "400 BadRequest: the namespace of the provided object does not match the "
                "namespace sent on the request"
            ),
            id="namespace",
        ),
    ],
)
async def test_object_of_another_kind_is_rejected(api: Api, body: object, said: str) -> None:
    answer = await api.post(api.path("configmaps"), body)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            {"metadata": {"name": "a"}},
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                'Gadget): Object \'Kind\' is missing in \'{"metadata": {"name": "a"}}\' '
                '({"metadata": {"name": "a"}})'
            ),
            id="no kind",
        ),
        pytest.param(
            gadget() | {"kind": "Widget"},
            (
                '422 Invalid: [FieldValueInvalid kind] Widget.contract.dlctl.dev "a" is '
                'invalid: kind: Invalid value: "Widget": must be Gadget'
            ),
            id="kind",
        ),
        pytest.param(
            gadget() | {"apiVersion": "x/v1"},
            (
                "400 BadRequest: the API version in the data (x/v1) does not match the "
                "expected API version (contract.dlctl.dev/v1)"
            ),
            id="version",
        ),
        pytest.param(
            {"kind": "Gadget", "metadata": {"name": "a"}, "spec": {"size": 1}},
            (
                "400 BadRequest: the API version in the data () does not match the "
                "expected API version (contract.dlctl.dev/v1)"
            ),
            id="no version",
        ),
        pytest.param(
            b"null",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "Gadget): Object 'Kind' is missing in 'null' (6e756c6c)"
            ),
            id="null",
        ),
        pytest.param(
            [],
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "Gadget): couldn't get version/kind; json parse error: json: cannot "
                "unmarshal array into Go value of type struct { APIVersion string "
                '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
                " (5b5d)"
            ),
            id="list",
        ),
        pytest.param(
            b"{",
            (
                "400 BadRequest: the object provided is unrecognized (must be of type "
                "Gadget): couldn't get version/kind; json parse error: unexpected end of "
                "JSON input ({)"
            ),
            id="truncated",
        ),
        pytest.param(
            gadget() | {"metadata": "x"},
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                "json: cannot unmarshal string into Go value of type v1.ObjectMeta"
            ),
            id="metadata is text",
        ),
        pytest.param(
            gadget("A_b"),
            (
                "422 Invalid: [FieldValueInvalid metadata.name] Gadget.contract.dlctl.dev"
                ' "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC '
                "1123 subdomain must consist of lower case alphanumeric characters, '-' "
                "or '.', and must start and end with an alphanumeric character"
            ),
            id="name",
        ),
    ],
)
async def test_custom_object_of_another_kind_is_rejected(
    gadget_api: Api, body: object, said: str
) -> None:
    answer = await gadget_api.post(gadget_api.path("gadgets", group=V1), body)
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        pytest.param(
            "text/csv",
            (
                "415 UnsupportedMediaType: the body of the request was in an unknown "
                "format - accepted media types include: application/json, "
                "application/yaml, application/vnd.kubernetes.protobuf"
            ),
            id="table",
        ),
        pytest.param(
            "x",
            (
                "415 UnsupportedMediaType: the body of the request was in an unknown "
                "format - accepted media types include: application/json, "
                "application/yaml, application/vnd.kubernetes.protobuf"
            ),
            id="nonsense",
        ),
    ],
)
async def test_unknown_media_type_is_unsupported(api: Api, type_: str, said: str) -> None:
    answer = await api.post(api.path("configmaps"), b"a,b", type_=type_)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"", "empty data (<empty>)", id="nothing"),
        pytest.param(
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix "
            "[107 56 115 0] ({})",
            id="JSON",
        ),
        pytest.param(b"k8s\x00", "empty body (6b387300)", id="only a prefix"),
        pytest.param(b"k8s\x00\xff", "unexpected EOF (6b387300ff)", id="cut off"),
        pytest.param(
            b"k8s\x00\x08\x05",
            "proto: wrong wireType = 0 for field TypeMeta (6b3873000805)",
            id="number as type",
        ),
    ],
)
async def test_malformed_protobuf_is_a_bad_request(api: Api, body: bytes, problem: str) -> None:
    type_ = "application/vnd.kubernetes.protobuf"
    answer = await api.call("POST", api.path("configmaps"), body, type_=type_)
    assert api.failure_text(answer) == (
        "400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): "
        f"{problem}"
    )
