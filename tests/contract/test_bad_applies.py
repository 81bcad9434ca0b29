"""Configurations and options that server-side apply rejects."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.field_managers import APPLY, apply
from tests.contract.objects import config_map

HEAD = {"apiVersion": "v1", "kind": "ConfigMap"}
UNTYPED = "500 : failed to create typed patch object"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            HEAD | config_map(managedFields=[]),
            "400 BadRequest: metadata.managedFields must be nil",
            id="managers",
        ),
        pytest.param(
            HEAD | config_map("b"),
            "400 BadRequest: the name of the object (b) does not match the name on the URL (a)",
            id="name",
        ),
        pytest.param(config_map(), "400 BadRequest: invalid object type: /, Kind=", id="no kind"),
        pytest.param(
            HEAD | config_map() | {"apiVersion": "v2"},
            "400 BadRequest: invalid object type: /v2, Kind=ConfigMap",
            id="version",
        ),
        pytest.param(
            HEAD | config_map() | {"apiVersion": 5},
            "400 BadRequest: invalid object type: /, Kind=ConfigMap",
            id="number as version",
        ),
        pytest.param(
            HEAD | config_map() | {"kind": ["x"]},
            "400 BadRequest: invalid object type: /v1, Kind=",
            id="list as kind",
        ),
        pytest.param(
            HEAD | {"metadata": 5},
            f"{UNTYPED} (/; /v1, Kind=ConfigMap): .metadata: expected map, got &{{5}}",
            id="number as metadata",
        ),
        pytest.param([], "400 BadRequest: error decoding YAML: error unmarshaling JSON: while "
            "decoding JSON: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}", id="list"),
        pytest.param(
            HEAD | config_map() | {"foo": 1},
            f"{UNTYPED} (/a; /v1, Kind=ConfigMap): .foo: field not declared in schema",
            id="unknown field",
        ),
        pytest.param(
            HEAD | config_map(data={"a": 1}),
            f"{UNTYPED} (/a; /v1, Kind=ConfigMap): .data.a: expected string, got "
            "&value.valueUnstructured{Value:1}",
            id="type",
        ),
        pytest.param(
            HEAD | config_map(namespace="kube-system"),
            "400 BadRequest: the namespace of the provided object does not match the namespace "
            "sent on the request",
            id="namespace",
        ),
        pytest.param(
            HEAD | config_map(resourceVersion="1"),
            '409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been '
            "modified; please apply your changes to the latest version and try again",
            id="resource version",
        ),
    ],
)  # fmt: skip
async def test_configuration_is_rejected(api: Api, body: Any, said: str) -> None:
    await api.create(api.path("configmaps"), config_map())
    assert api.failure_text(await apply(api, api.path("configmaps", "a"), body)) == said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"nested": "x"}, ".spec.nested: expected map, got &{x}", id="text as map"),
        pytest.param(
            {"ports": {"a": [1, True]}},
            ".spec.ports: expected list, got &{map[a:[1 true]]}",
            id="map as list",
        ),
        pytest.param({"foo": 1}, ".spec.foo: field not declared in schema", id="unknown field"),
        pytest.param(
            {"ports": [{"port": 1}]},
            ".spec.ports: element 0: associative list with keys has an element that omits all key "
            'fields ["name"] (and doesn\'t have default values for any key fields)',
            id="no key",
        ),
        pytest.param(
            {"ports": [{"name": "1"}, {"name": "1"}]},
            '.spec.ports: duplicate entries for key [name="1"]',
            id="twice",
        ),
        pytest.param(
            {"size": "x"}, ".spec.size: expected numeric (int or float), got string", id="type"
        ),
    ],
)
async def test_custom_configuration_is_rejected(gadget_api: Api, spec: JSON, said: str) -> None:
    answer = await apply(gadget_api, gadget_api.path("gadgets", "a", group=V1), gadget(**spec))
    assert gadget_api.failure_text(answer) == f"{UNTYPED} (/a; {V1}, Kind=Gadget): {said}"


async def test_result_of_an_apply_is_validated(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", "a", group=V1)
    answer = await apply(gadget_api, path, gadget(size=1000))
    assert gadget_api.failure_text(answer) == (
        '422 Invalid: [FieldValueInvalid spec.size] Gadget.contract.dlctl.dev "a" is invalid: '
        "spec.size: Invalid value: 1000: spec.size in body should be less than or equal to 100"
    )


async def test_new_object_cannot_have_a_uid(api: Api) -> None:
    body = HEAD | config_map(uid="1")
    assert api.failure_text(await apply(api, api.path("configmaps", "a"), body)) == (
        '409 Conflict: Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided '
        "object specified uid 1, and no existing object was found"
    )


async def test_new_object_needs_its_name(api: Api) -> None:
    assert api.failure_text(await apply(api, api.path("configmaps", "a"), HEAD)) == (
        "400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be "
        "provided"
    )


@pytest.mark.parametrize(
    ("type_", "params", "said"),
    [
        pytest.param(
            APPLY,
            {},
            "[FieldValueRequired fieldManager] "
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
            "apply patch",
            id="no manager",
        ),
        pytest.param(
            APPLY,
            {"fieldManager": "x" * 129},
            "[FieldValueTooLong fieldManager] "
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than '
            "128 bytes",
            id="long manager",
        ),
        pytest.param(
            "application/merge-patch+json",
            {"force": "true"},
            "[FieldValueForbidden force] "
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
            "non-apply patch",
            id="force",
        ),
    ],
)
async def test_options_are_rejected(
    api: Api, type_: str, params: dict[str, str], said: str
) -> None:
    body = HEAD | config_map()
    answer = await api.patch(api.path("configmaps", "a"), body, type_, **params)
    assert api.failure_text(answer) == f"422 Invalid: {said}"
