"""CRDs over HTTP: served, changed, rejected, deleted."""

import json
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.crds.validation import crd_errors
from tests.local.apiserver.definitions import definition, gadget, version
from tests.local.apiserver.raw_client import CRDS, MERGE, RawClient

GADGETS = "/apis/test.io/v1/namespaces/default/gadgets"
GADGETS_OLD = "/apis/test.io/v1beta1/namespaces/default/gadgets"
UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)


def conditions(crd: JSON) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in crd["status"]["conditions"]}


async def test_crd_is_established_at_once(api: RawClient) -> None:
    await api.create(CRDS, definition())

    crd = (await api.get(f"{CRDS}/gadgets.test.io")).body

    assert conditions(crd) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert crd["status"]["acceptedNames"] == {
        "plural": "gadgets",
        "singular": "gadget",
        "kind": "Gadget",
        "listKind": "GadgetList",
        "shortNames": ["gd"],
    }
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert (await api.get(GADGETS)).code == 200


async def test_status_that_was_removed_is_written_again(api: RawClient) -> None:
    await api.create(CRDS, definition())
    served = (await api.get(f"{CRDS}/gadgets.test.io")).body
    del served["status"]
    assert (await api.put(f"{CRDS}/gadgets.test.io/status", served)).code == 200
    crd = (await api.get(f"{CRDS}/gadgets.test.io")).body
    assert conditions(crd)["Established"] == ("True", "InitialNamesAccepted")
    assert (await api.get(GADGETS)).code == 200


async def test_objects_are_pruned_and_validated_by_the_schema(api: RawClient) -> None:
    await api.create(CRDS, definition())

    created = await api.create(GADGETS, gadget(size=1, unknown=2))
    refused = await api.post(GADGETS, gadget("b", size=-1))

    assert created["spec"] == {"size": 1, "color": "red"}
    assert refused.code == 422
    assert refused.body["message"] == (
        'Gadget.test.io "b" is invalid: spec.size: Invalid value: -1: '
        "spec.size in body should be greater than or equal to 0"
    )
    assert refused.body["details"] == {
        "name": "b",
        "group": "test.io",
        "kind": "Gadget",
        "causes": [
            {
                "field": "spec.size",
                "reason": "FieldValueInvalid",
                "message": refused.body["message"].partition(": spec.size: ")[2],
            }
        ],
    }


async def test_rules_are_skipped_if_a_required_field_is_missing(api: RawClient) -> None:
    await api.create(CRDS, definition())

    refused = await api.post(GADGETS, gadget())

    assert [(c["field"], c["message"]) for c in refused.body["details"]["causes"]] == [
        ("spec.size", "Required value"),
        ("<nil>", UNCHECKED),
    ]


async def test_unknown_fields_are_rejected_on_request(api: RawClient) -> None:
    await api.create(CRDS, definition())

    refused = await api.post(GADGETS, gadget(size=1, bad=1), fieldValidation="Strict")

    assert refused.code == 400
    assert refused.body["message"] == (
        'Gadget in version "v1" cannot be handled as a Gadget: '
        'strict decoding error: unknown field "spec.bad"'
    )


async def test_status_is_written_by_its_own_path_only(api: RawClient) -> None:
    await api.create(CRDS, definition())
    created = await api.create(GADGETS, {**gadget(size=1), "status": {"phase": "Done"}})

    patched = await api.patch(
        f"{GADGETS}/a/status", {"status": {"phase": "Done"}, "spec": {"size": 9}}
    )
    refused = await api.patch(f"{GADGETS}/a/status", {"status": {"phase": 1}})

    assert "status" not in created
    assert patched.body["spec"]["size"] == 1
    assert patched.body["status"] == {"phase": "Done"}
    assert patched.body["metadata"]["generation"] == 1
    assert refused.body["message"] == (
        'Gadget.test.io "a" is invalid: [status.phase: Invalid value: "integer": '
        'phase in body must be of type string: "integer", <nil>: Invalid value: null: '
        f"{UNCHECKED.partition('null: ')[2]}]"
    )


async def test_one_object_is_served_under_every_version(api: RawClient) -> None:
    versions = [version("v1beta1", storage=False), version("v1")]
    await api.create(CRDS, definition(versions=versions))
    await api.create(GADGETS_OLD, gadget(size=1, api_version="test.io/v1beta1"))

    new, old = await api.get(f"{GADGETS}/a"), await api.get(f"{GADGETS_OLD}/a")

    assert new.body["apiVersion"] == "test.io/v1"
    assert old.body["apiVersion"] == "test.io/v1beta1"
    assert new.body["metadata"] == old.body["metadata"]
    assert (await api.get(GADGETS)).body["items"][0]["apiVersion"] == "test.io/v1"


async def test_changed_schema_applies_from_then_on(api: RawClient) -> None:
    await api.create(CRDS, definition())
    await api.create(GADGETS, gadget(size=1))
    stricter = version("v1", maximum=5)
    patch = {"spec": {"versions": [stricter]}}

    assert (await api.patch(f"{CRDS}/gadgets.test.io", patch)).code == 200

    assert (await api.post(GADGETS, gadget("b", size=6))).code == 422
    assert (await api.patch(f"{GADGETS}/a", {"spec": {"size": 6}})).code == 422


async def test_new_storage_version_is_added_to_the_stored_ones(api: RawClient) -> None:
    await api.create(CRDS, definition())
    versions = [version("v2"), version("v1", storage=False)]

    crd = (await api.patch(f"{CRDS}/gadgets.test.io", {"spec": {"versions": versions}})).body
    dropped = await api.patch(f"{CRDS}/gadgets.test.io", {"spec": {"versions": versions[:1]}})

    assert crd["status"]["storedVersions"] == ["v1", "v2"]
    assert dropped.code == 422
    assert "missing from spec.versions; v1 was previously a storage" in dropped.body["message"]


async def test_version_that_is_no_longer_served_is_gone(api: RawClient) -> None:
    versions = [version("v1beta1", storage=False), version("v1")]
    await api.create(CRDS, definition(versions=versions))
    versions[0]["served"] = False

    await api.patch(f"{CRDS}/gadgets.test.io", {"spec": {"versions": versions}})

    assert (await api.get(GADGETS_OLD)).code == 404
    assert (await api.get(GADGETS)).code == 200


async def test_deleted_crd_deletes_its_objects(api: RawClient) -> None:
    await api.create(CRDS, definition())
    await api.create(GADGETS, gadget(size=1))

    await api.delete(f"{CRDS}/gadgets.test.io")

    assert (await api.get(f"{CRDS}/gadgets.test.io")).code == 404
    assert (await api.get(GADGETS)).code == 404
    await api.create(CRDS, definition())
    assert (await api.get(GADGETS)).body["items"] == []


async def test_crd_waits_for_the_finalizers_of_its_objects(api: RawClient) -> None:
    await api.create(CRDS, definition())
    held = gadget(size=1)
    held["metadata"]["finalizers"] = ["test.io/hold"]
    await api.create(GADGETS, held)

    await api.delete(f"{CRDS}/gadgets.test.io")
    crd = (await api.get(f"{CRDS}/gadgets.test.io")).body
    assert conditions(crd)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert "deletionTimestamp" in (await api.get(f"{GADGETS}/a")).body["metadata"]

    await api.patch(f"{GADGETS}/a", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{CRDS}/gadgets.test.io")).code == 404


async def test_crd_with_a_taken_kind_waits_until_it_is_free(api: RawClient) -> None:
    await api.create(CRDS, definition())
    rival = definition(plural="things", shortNames=[])
    await api.create(CRDS, rival)

    waiting = (await api.get(f"{CRDS}/things.test.io")).body
    assert conditions(waiting)["NamesAccepted"] == ("False", "ListKindConflict")
    assert conditions(waiting)["Established"] == ("False", "NotAccepted")
    assert (await api.get("/apis/test.io/v1/things")).code == 404

    await api.delete(f"{CRDS}/gadgets.test.io")
    assert (await api.get("/apis/test.io/v1/things")).code == 200


def changed(**spec: Any) -> JSON:
    crd = definition()
    crd["spec"].update(spec)
    return crd


def with_schema(schema: JSON) -> JSON:
    crd = definition()
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    return crd


def said(crd: JSON) -> list[str]:
    names = crd["spec"]["names"]
    names.setdefault("listKind", f"{names['kind']}List")
    crd["spec"].setdefault("conversion", {"strategy": "None"})
    return [f"{error.field}: {error.message}" for error in crd_errors(crd)]


def test_valid_crd_has_no_errors() -> None:
    assert said(definition()) == []


@pytest.mark.parametrize(
    ("crd", "message"),
    [
        pytest.param(
            changed(group="other.io"),
            'metadata.name: Invalid value: "gadgets.test.io": must be '
            'spec.names.plural+"."+spec.group',
            id="name",
        ),
        pytest.param(
            changed(scope="Everywhere"),
            'spec.scope: Unsupported value: "Everywhere": supported values: '
            '"Cluster", "Namespaced"',
            id="scope",
        ),
        pytest.param(
            changed(versions=[{"name": "v1", "served": True, "storage": True}]),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
            id="no schema",
        ),
    ],
)
def test_invalid_crd_is_rejected(crd: JSON, message: str) -> None:
    assert said(crd) == [message]


def test_crd_needs_exactly_one_storage_version() -> None:
    versions, stored = said(changed(versions=[version("v1"), version("v2")]))

    assert versions.startswith("spec.versions: Invalid value: [{")
    assert versions.endswith("must have exactly one version marked as storage version")
    # The real server also validates what is stored, and rejects that.
    assert stored.startswith('status.storedVersions: Invalid value: ["v1"]')


ROOT = "spec.validation.openAPIV3Schema"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param({}, ".type: Required value: must not be empty for specified object fields"),
        pytest.param({"type": "array"}, ".items: Required value: must be specified"),
        pytest.param(
            {"type": "array", "items": {}},
            ".items.type: Required value: must not be empty for specified array items",
        ),
        pytest.param(
            {"type": "object", "anyOf": [{"type": "object"}]},
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        pytest.param({"type": "object", "$ref": "#/x"}, ".$ref: Forbidden: $ref is not supported"),
        pytest.param(
            {"type": "integer", "minimum": 1, "default": 0},
            ".default: Invalid value: 0:  in body should be greater than or equal to 1",
        ),
    ],
)
def test_non_structural_schema_is_rejected(field: JSON, message: str) -> None:
    schema = {"type": "object", "properties": {"spec": field}}

    assert said(with_schema(schema)) == [f"{ROOT}.properties[spec]{message}"]


def test_crd_with_an_uncompilable_rule_is_rejected() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "self.a >"}]}

    (message,) = said(with_schema(schema))

    assert message.startswith(f"{ROOT}.x-kubernetes-validations[0].rule: Invalid value: ")
    assert "compilation failed: ERROR: <input>:1:9: Syntax error" in message


def test_crd_with_a_non_boolean_rule_is_rejected() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "1 + 1"}]}

    (message,) = said(with_schema(schema))

    assert message.endswith("cel expression must evaluate to a bool")


async def test_fields_that_a_new_schema_lacks_are_kept_but_not_read(api: RawClient) -> None:
    crd = await api.create(CRDS, definition())
    await api.create(GADGETS, gadget(size=1))
    versions = json.loads(json.dumps(crd["spec"]["versions"]))
    del versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
    name = f"{CRDS}/gadgets.test.io"

    await api.patch(name, {"spec": {"versions": versions}}, MERGE)
    read = (await api.get(f"{GADGETS}/a")).body["spec"]
    listed = [item["spec"] for item in (await api.get(GADGETS)).body["items"]]
    await api.patch(name, {"spec": {"versions": crd["spec"]["versions"]}}, MERGE)
    again = (await api.get(f"{GADGETS}/a")).body["spec"]

    assert (read, listed) == ({"color": "red"}, [{"color": "red"}])
    assert again == {"size": 1, "color": "red"}


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        pytest.param(
            3.0,
            "0: .spec.replicas accessor error: 3 is of the type float64, expected int64",
            id="float",
        ),
        pytest.param(-1, "-1: should be a non-negative integer", id="negative"),
        pytest.param(
            2**31, "2147483648: should be less than or equal to 2147483647", id="too many"
        ),
    ],
)
async def test_replicas_of_the_scale_subresource_are_validated(
    api: RawClient, replicas: float, problem: str
) -> None:
    served = version()
    fields = served["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["replicas"] = {"type": "integer"}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    served["subresources"]["scale"] = paths
    await api.create(CRDS, definition(versions=[served]))

    refused = await api.post(GADGETS, gadget(size=1, replicas=replicas))

    assert refused.code == 422
    said = f'Gadget.test.io "a" is invalid: .spec.replicas: Invalid value: {problem}'
    assert refused.body["message"] == said
