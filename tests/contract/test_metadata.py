"""Validation of metadata: names, labels, owners, finalizers."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        pytest.param(
            {"finalizers": ["x"]},
            (
                '422 Invalid: [FieldValueInvalid metadata.finalizers[0]] ConfigMap "a" is'
                ' invalid: metadata.finalizers[0]: Invalid value: "x": name is neither a '
                "standard finalizer name nor is it fully qualified"
            ),
            id="finalizer without a domain",
        ),
        pytest.param(
            {"finalizers": ["a b"]},
            (
                "422 Invalid: [FieldValueInvalid metadata.finalizers] [FieldValueInvalid "
                'metadata.finalizers[0]] ConfigMap "a" is invalid: metadata.finalizers: '
                'Invalid value: "a b": name part must consist of alphanumeric characters,'
                " '-', '_' or '.', and must start and end with an alphanumeric character,"
                ' metadata.finalizers[0]: Invalid value: "a b": name is neither a '
                "standard finalizer name nor is it fully qualified"
            ),
            id="finalizer with a space",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            (
                '422 Invalid: [FieldValueInvalid metadata.finalizers] ConfigMap "a" is '
                "invalid: metadata.finalizers: Invalid value: "
                '["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion'
                " cannot be both set"
            ),
            id="orphan and foreground",
        ),
        pytest.param(
            {"ownerReferences": [{}]},
            (
                "422 Invalid: [FieldValueInvalid metadata.ownerReferences.apiVersion] "
                "[FieldValueInvalid metadata.ownerReferences.kind] [FieldValueInvalid "
                "metadata.ownerReferences.name] [FieldValueInvalid "
                'metadata.ownerReferences.uid] ConfigMap "a" is invalid: '
                'metadata.ownerReferences.apiVersion: Invalid value: "": version must not'
                ' be empty, metadata.ownerReferences.kind: Invalid value: "": must not be'
                ' empty, metadata.ownerReferences.name: Invalid value: "": must not be '
                'empty, metadata.ownerReferences.uid: Invalid value: "": must not be '
                "empty"
            ),
            id="empty owner",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "Pod", "name": "a", "uid": "1"}]},
            (
                "422 Invalid: [FieldValueInvalid metadata.ownerReferences.apiVersion] "
                'ConfigMap "a" is invalid: metadata.ownerReferences.apiVersion: Invalid '
                'value: "a/b/c": version must not be empty'
            ),
            id="owner of no version",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1"}]},
            (
                '422 Invalid: [FieldValueInvalid metadata.ownerReferences] ConfigMap "a" '
                "is invalid: metadata.ownerReferences: Invalid value: "
                "OBJECT: /v1, Kind=Event"
                " is disallowed from being an owner"
            ),
            id="owner that is an event",
        ),
        pytest.param(
            {
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": name,
                        "uid": name,
                        "controller": True,
                    }
                    for name in "ab"
                ]
            },
            (
                '422 Invalid: [FieldValueInvalid metadata.ownerReferences] ConfigMap "a" '
                "is invalid: metadata.ownerReferences: Invalid value: OBJECT: Only one "
                'reference can have Controller set to true. Found "true" in references '
                "for Pod/a and Pod/b"
            ),
            id="two controllers",
        ),
    ],
)
async def test_malformed_owners_and_finalizers_are_invalid(api: Api, meta: JSON, said: str) -> None:
    answer = await api.post(api.path("configmaps"), config_map(**meta))
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("plural", "meta", "said"),
    [
        pytest.param(
            "configmaps",
            {"labels": {"a": 1}},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal number into Go struct field "
                "ObjectMeta.metadata.labels of type string"
            ),
            id="label",
        ),
        pytest.param(
            "configmaps",
            {"labels": "x"},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal string into Go struct field "
                "ObjectMeta.metadata.labels of type map[string]string"
            ),
            id="labels",
        ),
        pytest.param(
            "configmaps",
            {"annotations": {"a": True}},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal bool into Go struct field "
                "ObjectMeta.metadata.annotations of type string"
            ),
            id="annotation",
        ),
        pytest.param(
            "configmaps",
            {"finalizers": "x"},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal string into Go struct field "
                "ObjectMeta.metadata.finalizers of type []string"
            ),
            id="finalizers",
        ),
        pytest.param(
            "configmaps",
            {"ownerReferences": "x"},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal string into Go struct field "
                "ObjectMeta.metadata.ownerReferences of type []v1.OwnerReference"
            ),
            id="owners",
        ),
        pytest.param(
            "configmaps",
            {"ownerReferences": ["x"]},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal string into Go struct field "
                "ObjectMeta.metadata.ownerReferences of type v1.OwnerReference"
            ),
            id="owner",
        ),
        pytest.param(
            "configmaps",
            {"name": 1},
            (
                '400 BadRequest: ConfigMap in version "v1" cannot be handled as a '
                "ConfigMap: json: cannot unmarshal number into Go struct field "
                "ObjectMeta.metadata.name of type string"
            ),
            id="name",
        ),
        pytest.param(
            "gadgets",
            {"labels": {"a": 1}},
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of "
                "type string"
            ),
            id="label of a gadget",
        ),
        pytest.param(
            "gadgets",
            {"namespace": []},
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                "json: cannot unmarshal array into Go struct field ObjectMeta.namespace "
                "of type string"
            ),
            id="namespace of a gadget",
        ),
        pytest.param(
            "gadgets",
            {"ownerReferences": [{"controller": "x"}]},
            (
                '400 BadRequest: Gadget in version "v1" cannot be handled as a Gadget: '
                "json: cannot unmarshal string into Go struct field "
                "OwnerReference.ownerReferences.controller of type bool"
            ),
            id="owner of a gadget",
        ),
    ],
)
async def test_metadata_of_the_wrong_type_is_a_bad_request(
    gadget_api: Api, plural: str, meta: JSON, said: str
) -> None:
    answer = await gadget_api.post(
        gadget_api.path(plural, group=V1 if plural == "gadgets" else "v1"),
        gadget(meta=meta) if plural == "gadgets" else config_map(**meta),
    )
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"metadata": {"name": "b"}},
            ("400 BadRequest: the name of the object (b) does not match the name on the URL (a)"),
            id="name",
        ),
        pytest.param(
            {"metadata": {"name": None}},
            (
                "400 BadRequest: the name of the object (a based on URL) was "
                "undeterminable: name must be provided"
            ),
            id="no name",
        ),
        pytest.param(
            {"metadata": {"namespace": "other"}},
            (
                "400 BadRequest: the namespace of the provided object does not match the "
                "namespace sent on the request"
            ),
            id="namespace",
        ),
        pytest.param(
            {"metadata": {"uid": "x"}},
            (
                '422 Invalid: [FieldValueInvalid metadata.uid] ConfigMap "a" is invalid: '
                'metadata.uid: Invalid value: "x": field is immutable'
            ),
            id="uid",
        ),
        pytest.param(
            {"metadata": {"resourceVersion": "1"}},
            (
                '409 Conflict: Operation cannot be fulfilled on configmaps "a": the '
                "object has been modified; please apply your changes to the latest "
                "version and try again"
            ),
            id="old version",
        ),
        pytest.param(
            {"metadata": {"resourceVersion": "x"}},
            '500 : strconv.ParseUint: parsing "x": invalid syntax',
            id="no version",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}},
            (
                "422 Invalid: [FieldValueInvalid metadata.deletionTimestamp] ConfigMap "
                '"a" is invalid: metadata.deletionTimestamp: Invalid value: '
                '"2020-01-01T00:00:00Z": field is immutable'
            ),
            id="deletion",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "b c"}}},
            (
                '422 Invalid: [FieldValueInvalid metadata.labels] ConfigMap "a" is '
                'invalid: metadata.labels: Invalid value: "b c": a valid label must be an'
                " empty string or consist of alphanumeric characters, '-', '_' or '.', "
                "and must start and end with an alphanumeric character"
            ),
            id="label",
        ),
    ],
)
async def test_change_of_immutable_metadata_is_rejected(api: Api, change: JSON, said: str) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), change)
    assert api.failure_text(answer) == said
