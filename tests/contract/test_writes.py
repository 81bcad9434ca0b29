"""Writes rejected for their options, their fields, or existing objects."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map, pod
from tests.contract.version_marks import UPDATE_OF_NOTHING

LEASES = "coordination.k8s.io/v1"


@pytest.mark.parametrize(
    ("plural", "body", "said"),
    [
        pytest.param(
            "gadgets",
            gadget(what=1),
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                'strict decoding error: unknown field "spec.what"'
            ),
            id="custom",
        ),
        pytest.param(
            "gadgets",
            gadget(what=1, nested={"x": 1}),
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                'strict decoding error: unknown field "spec.nested.x", unknown field '
                '"spec.what"'
            ),
            id="two",
        ),
        pytest.param(
            "gadgets",
            gadget() | {"extra": 1},
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                'strict decoding error: unknown field "extra"'
            ),
            id="at the root",
        ),
        pytest.param(
            "gadgets",
            gadget(meta={"foo": 1}),
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                'strict decoding error: unknown field "metadata.foo"'
            ),
            id="in metadata",
        ),
        pytest.param(
            "configmaps",
            config_map() | {"foo": 1},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                'ConfigMap: strict decoding error: unknown field "foo"'
            ),
            id="built-in",
        ),
        pytest.param(
            "pods",
            pod(foo=1),
            (
                '400 BadRequest: Pod in version "v1" cannot be handled as a Pod: strict '
                'decoding error: unknown field "spec.foo"'
            ),
            id="in a pod",
        ),
        pytest.param(
            "configmaps",
            {"metadata": {"name": "a"}, "Data": {}},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                'ConfigMap: strict decoding error: unknown field "Data"'
            ),
            id="other case",
        ),
        pytest.param(
            "configmaps",
            b'{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}',
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                'ConfigMap: strict decoding error: duplicate field "data.a"'
            ),
            id="twice",
        ),
    ],
)
async def test_strict_field_validation_rejects_unknown_and_duplicate_fields(
    gadget_api: Api, plural: str, body: object, said: str
) -> None:
    answer = await gadget_api.post(
        gadget_api.path(plural, group=V1 if plural == "gadgets" else "v1"),
        body,
        fieldValidation="Strict",
    )
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("params", "said"),
    [
        pytest.param(
            {"dryRun": "x"},
            (
                "422 Invalid: [FieldValueNotSupported dryRun] CreateOptions.meta.k8s.io "
                '"" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"'
            ),
            id="dry run",
        ),
        pytest.param(
            {"fieldValidation": "X"},
            (
                "422 Invalid: [FieldValueNotSupported fieldValidation] "
                'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported '
                'value: "X": supported values: "", "Ignore", "Strict", "Warn"'
            ),
            id="validation",
        ),
    ],
)
async def test_invalid_write_option_is_invalid(api: Api, params: dict[str, str], said: str) -> None:
    answer = await api.post(api.path("configmaps"), config_map(), **params)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        pytest.param(
            "configmaps b", config_map("b"), '404 NotFound: configmaps "b" not found', id="absent"
        ),
        pytest.param(
            "configmaps a",
            config_map("b"),
            ("400 BadRequest: the name of the object (b) does not match the name on the URL (a)"),
            id="another name",
        ),
        pytest.param(
            "configmaps a",
            {"data": {}},
            (
                "400 BadRequest: the name of the object (a based on URL) was "
                "undeterminable: name must be provided"
            ),
            id="no name",
        ),
        pytest.param(
            "configmaps a",
            config_map(resourceVersion="1"),
            (
                '409 Conflict: Operation cannot be fulfilled on configmaps "a": the '
                "object has been modified; please apply your changes to the latest "
                "version and try again"
            ),
            id="old version",
        ),
        pytest.param(
            "configmaps a",
            config_map(uid="u"),
            (
                '409 Conflict: Operation cannot be fulfilled on configmaps "a": '
                "StorageError: invalid object, Code: 4, Key: "
                "/registry/configmaps/NAMESPACE/a, ResourceVersion: 0, "
                "AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID in "
                "object meta: UID"
            ),
            id="uid",
        ),
        pytest.param(
            "configmaps a",
            config_map(namespace="other"),
            (
                "400 BadRequest: the namespace of the provided object does not match the "
                "namespace sent on the request"
            ),
            id="namespace",
        ),
        pytest.param(
            "gadgets a",
            gadget(size=5),
            (
                "422 Invalid: [FieldValueInvalid metadata.resourceVersion] "
                'gadgets.contract.dlctl.dev "a" is invalid: metadata.resourceVersion: '
                "Invalid value: 0: must be specified for an update"
            ),
            id="no version of a gadget",
        ),
        pytest.param(
            "gadgets a",
            gadget(size=5, meta={"resourceVersion": "1"}),
            (
                "409 Conflict: Operation cannot be fulfilled on "
                'gadgets.contract.dlctl.dev "a": the object has been modified; please '
                "apply your changes to the latest version and try again"
            ),
            id="old version of a gadget",
        ),
        pytest.param(
            "gadgets b",
            gadget("b", meta={"resourceVersion": "1"}),
            '404 NotFound: gadgets.contract.dlctl.dev "b" not found',
            id="absent gadget",
        ),
        pytest.param(
            "gadgets a",
            gadget(meta={"uid": "u"}),
            (
                "409 Conflict: Operation cannot be fulfilled on "
                'gadgets.contract.dlctl.dev "a": StorageError: invalid object, Code: 4, '
                "Key: /registry/contract.dlctl.dev/gadgets/NAMESPACE/a, ResourceVersion: "
                "0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID "
                "in object meta: UID"
            ),
            id="uid of a gadget",
        ),
        pytest.param(
            "gadgets a/status",
            gadget(status={}),
            (
                "422 Invalid: [FieldValueInvalid metadata.resourceVersion] "
                'gadgets.contract.dlctl.dev "a" is invalid: metadata.resourceVersion: '
                "Invalid value: 0: must be specified for an update"
            ),
            id="no version of a status",
        ),
    ],
)
async def test_conflicting_update_is_rejected(
    gadget_api: Api, name: str, body: object, said: str
) -> None:
    await gadget_api.create(gadget_api.path("configmaps"), config_map())
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget())
    answer = await gadget_api.put(
        gadget_api.path(*name.split(" "), group=V1 if name.startswith("gadgets") else "v1"), body
    )
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("name", "group", "body", "said"),
    [
        pytest.param(
            "leases a",
            LEASES,
            {"metadata": {"name": "a"}},
            (
                '409 Conflict: Operation cannot be fulfilled on leases.coordination.k8s.io "a": '
                "StorageError: invalid object, Code: 4, Key: /registry/leases/NAMESPACE/a, "
                "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: "
                "UID, UID in object meta: "
            ),
            id="lease, which an update may create",
        ),
        pytest.param(
            "configmaps a",
            "v1",
            config_map(),
            '404 NotFound: configmaps "a" not found',
            id="config map",
            marks=UPDATE_OF_NOTHING,
        ),
        pytest.param(
            "gadgets a",
            V1,
            gadget(),
            '404 NotFound: gadgets.contract.dlctl.dev "a" not found',
            id="gadget",
            marks=UPDATE_OF_NOTHING,
        ),
        pytest.param(
            "gadgets a/status",
            V1,
            gadget(),
            '404 NotFound: gadgets.contract.dlctl.dev "a" not found',
            id="status of a gadget",
            marks=UPDATE_OF_NOTHING,
        ),
    ],
)
async def test_update_of_a_deleted_object_is_rejected(
    gadget_api: Api, name: str, group: str, body: JSON, said: str
) -> None:
    plural, path = name.split(" ")
    created = await gadget_api.create(gadget_api.path(plural, group=group), body)
    await gadget_api.delete(gadget_api.path(plural, "a", group=group))
    answer = await gadget_api.put(gadget_api.path(plural, path, group=group), created)
    assert gadget_api.failure_text(answer) == said


async def test_lease_updated_without_a_uid_is_created_again(api: Api) -> None:
    where = api.path("leases", group=LEASES)
    created = await api.create(where, {"metadata": {"name": "a"}})
    await api.delete(f"{where}/a")
    uid = created["metadata"].pop("uid")
    answer = await api.put(f"{where}/a", created)
    assert answer.code == 201
    assert answer.body["metadata"]["uid"] != uid
