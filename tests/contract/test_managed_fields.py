"""Field managers in ``metadata.managedFields`` of a request, which may set them."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.field_managers import managers
from tests.contract.objects import config_map

BUILT_IN = (
    '400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot '
    "unmarshal"
)
CUSTOM = (
    '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal'
)


def entry(**changes: Any) -> JSON:
    fields: JSON = {
        "manager": "other",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:k": {}}},
    }
    return fields | changes


@pytest.mark.parametrize(
    ("entries", "built_in", "custom"),
    [
        pytest.param(
            "x",
            "string into Go struct field ObjectMeta.metadata.managedFields of type "
            "[]v1.ManagedFieldsEntry",
            "string into Go struct field ObjectMeta.managedFields of type []v1.ManagedFieldsEntry",
            id="text",
        ),
        pytest.param(
            [5],
            "number into Go struct field ObjectMeta.metadata.managedFields of type "
            "v1.ManagedFieldsEntry",
            "number into Go struct field ObjectMeta.managedFields of type v1.ManagedFieldsEntry",
            id="entry",
        ),
        pytest.param(
            [entry(manager=5)],
            "number into Go struct field ManagedFieldsEntry.metadata.managedFields.manager of "
            "type string",
            "number into Go struct field ManagedFieldsEntry.managedFields.manager of type string",
            id="manager",
        ),
    ],
)
async def test_managers_of_a_wrong_type_are_a_bad_request(
    gadget_api: Api, entries: Any, built_in: str, custom: str
) -> None:
    api = gadget_api
    answer = await api.post(api.path("configmaps"), config_map(managedFields=entries))
    assert api.failure_text(answer) == f"{BUILT_IN} {built_in}"
    sent = gadget(meta={"managedFields": entries})
    answer = await api.post(api.path("gadgets", group=V1), sent)
    assert api.failure_text(answer) == f"{CUSTOM} {custom}"


MALFORMED = [
    pytest.param(entry(fieldsV1={"f:data": 5}), id="number"),
    pytest.param(entry(fieldsV1={"f:data": "x"}), id="text"),
    pytest.param(entry(fieldsV1={"f:data": {"f:k": []}}), id="list"),
    pytest.param(entry(fieldsV1=[1]), id="list of fields"),
    pytest.param(entry(fieldsV1={"data": {}}), id="no type of element"),
    pytest.param(entry(fieldsV1={"": {}}), id="empty element"),
    pytest.param(entry(fieldsV1={"f:data": {"k:x": {}}}), id="key"),
    pytest.param(entry(fieldsV1={"f:data": {"k:[1]": {}}}), id="list as key"),
    pytest.param(entry(fieldsV1={"f:data": {"v:{": {}}}), id="value"),
    pytest.param(entry(fieldsV1={"f:data": {"i:x": {}}}), id="index"),
    pytest.param(entry(operation="x"), id="operation"),
    pytest.param(entry(fieldsType="x"), id="type of fields"),
    pytest.param(entry(apiVersion=""), id="version"),
]


@pytest.mark.parametrize("malformed", MALFORMED)
async def test_malformed_manager_of_a_new_object_is_ignored(api: Api, malformed: JSON) -> None:
    sent = config_map(managedFields=[malformed])
    answer = await api.post(api.path("configmaps"), sent, fieldManager="me")
    assert answer.code == 201
    assert managers(answer) == {"me Update": {"f:data": {".": {}, "f:k": {}}}}


@pytest.mark.parametrize("malformed", MALFORMED)
async def test_malformed_manager_in_an_update_leaves_the_former_ones(
    api: Api, malformed: JSON
) -> None:
    await api.post(api.path("configmaps"), config_map(), fieldManager="me")
    sent = config_map(managedFields=[malformed], data={"k": "v", "l": "w"})
    answer = await api.put(api.path("configmaps", "a"), sent, fieldManager="you")
    assert answer.code == 200
    assert managers(answer) == {
        "me Update": {"f:data": {".": {}, "f:k": {}}},
        "you Update": {"f:data": {"f:l": {}}},
    }


async def test_managers_in_an_update_replace_the_former_ones(api: Api) -> None:
    await api.post(api.path("configmaps"), config_map(), fieldManager="me")
    fields = {
        "f:data": {"f:k": {".": {"x": 1}}, "f:m": None},
        "f:metadata": {"x:unknown": {"y": 1}, "f:finalizers": {'v: "a/b"': {}}},
        "f:x": {'k:{"b": 1, "a": "x"}': {}},
    }
    sent = config_map(managedFields=[entry(fieldsV1=fields)])
    answer = await api.put(api.path("configmaps", "a"), sent, fieldManager="you")
    assert answer.code == 200
    assert managers(answer) == {
        "other Update": {
            "f:data": {"f:k": {}, "f:m": {}},
            "f:metadata": {"f:finalizers": {'v:"a/b"': {}}},
            "f:x": {'k:{"a":"x","b":1}': {}},
        }
    }


async def test_managers_in_an_update_of_a_status_are_ignored(gadget_api: Api) -> None:
    api, path = gadget_api, gadget_api.path("gadgets", "a", group=V1)
    created = await api.create(api.path("gadgets", group=V1), gadget())
    for sent in ([entry()], []):
        change = {"metadata": {"managedFields": sent}, "status": {"phase": "Ready"}}
        answer = await api.patch(f"{path}/status", change, fieldManager="you")
        assert answer.code == 200
        assert [each["manager"] for each in answer.body["metadata"]["managedFields"]] == [
            created["metadata"]["managedFields"][0]["manager"],
            "you",
        ]
