"""Discovery and OpenAPI, as clients read them."""

import re
from collections.abc import Iterator
from typing import Any

import kubernetes_asyncio.client
import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.discovery.groups import AGGREGATED_TYPE, version_order, wants_aggregated
from dlctl.local.apiserver.serialization.builtin_types import kinds
from tests.local.apiserver.definitions import definition, version
from tests.local.apiserver.raw_client import CRDS, RawClient


async def test_both_forms_of_discovery_name_the_same_resources(api: RawClient) -> None:
    await api.create(CRDS, definition())
    legacy = set[tuple[str, str]]()
    for group in (await api.get("/apis")).body["groups"]:
        path = group["preferredVersion"]["groupVersion"]
        listed = (await api.get(f"/apis/{path}")).body
        legacy |= {(path, each["name"]) for each in listed["resources"]}

    answer = await api.session.get("/apis", headers={"Accept": AGGREGATED_TYPE})
    everything = await answer.json(content_type=None)

    assert answer.headers["Content-Type"].startswith(AGGREGATED_TYPE)
    assert legacy == set(_aggregated_names(everything))
    assert ("test.io/v1", "gadgets/status") in legacy


def _aggregated_names(everything: JSON) -> Iterator[tuple[str, str]]:
    for group in everything["items"]:
        for served in group["versions"]:
            path = f"{group['metadata']['name']}/{served['version']}"
            for each in served["resources"]:
                yield path, each["resource"]
                for below in each.get("subresources", ()):
                    yield path, f"{each['resource']}/{below['subresource']}"


async def test_resource_is_described_with_its_names_and_verbs(api: RawClient) -> None:
    listed = (await api.get("/api/v1")).body["resources"]

    assert next(each for each in listed if each["name"] == "pods") == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ],
        "shortNames": ["po"],
        "categories": ["all"],
    }


@pytest.mark.parametrize(
    ("accept", "aggregated"),
    [
        pytest.param(f"{AGGREGATED_TYPE},application/json", True, id="kubectl"),
        pytest.param("application/json", False, id="plain"),
        pytest.param(f"application/json,{AGGREGATED_TYPE}", False, id="rather plain"),
        pytest.param(AGGREGATED_TYPE.replace("v=v2;", "v=v2beta1;"), False, id="older form"),
    ],
)
def test_aggregated_discovery_is_sent_on_request(accept: str, aggregated: bool) -> None:
    assert wants_aggregated(accept) is aggregated


def test_versions_are_sorted_by_maturity() -> None:
    names = ["v1alpha1", "v2", "v1beta2", "v10", "v1beta10", "other", "v1"]

    assert sorted(names, key=version_order) == [
        "v10",
        "v2",
        "v1",
        "v1beta10",
        "v1beta2",
        "v1alpha1",
        "other",
    ]


async def test_unknown_group_is_not_found(api: RawClient) -> None:
    assert (await api.get("/apis/nobody.io/v1")).code == 404
    assert (await api.get("/apis/nobody.io")).code == 404
    assert (await api.get("/openapi/v3/apis/nobody.io/v1")).code == 404


async def test_openapi_of_a_custom_kind_is_its_schema(api: RawClient) -> None:
    await api.create(CRDS, definition())
    index = (await api.get("/openapi/v3")).body["paths"]

    path = index["apis/test.io/v1"]["serverRelativeURL"]
    document = (await api.get(path.partition("?")[0])).body

    schema = document["components"]["schemas"]["io.test.v1.Gadget"]
    spec = schema["properties"]["spec"]
    assert spec["description"] == "What is wanted."
    assert spec["properties"]["size"]["minimum"] == 0
    kind = {"group": "test.io", "version": "v1", "kind": "Gadget"}
    assert schema["x-kubernetes-group-version-kind"] == [kind]


async def test_openapi_url_changes_with_the_schema(api: RawClient) -> None:
    await api.create(CRDS, definition())
    before = (await api.get("/openapi/v3")).body["paths"]

    patch = {"spec": {"versions": [version(maximum=5)]}}
    await api.patch(f"{CRDS}/gadgets.test.io", patch)
    after = (await api.get("/openapi/v3")).body["paths"]

    assert before["apis/test.io/v1"] != after["apis/test.io/v1"]
    assert before["api/v1"] == after["api/v1"]


async def test_openapi_of_writes_has_field_validation(api: RawClient) -> None:
    document = (await api.get("/openapi/v3/api/v1")).body

    operation = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]

    assert "fieldValidation" in {each["name"] for each in operation["parameters"]}


@pytest.mark.parametrize(
    "path", ["/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/test.io/v1"]
)
async def test_all_references_of_a_document_resolve(api: RawClient, path: str) -> None:
    await api.create(CRDS, definition())
    document = (await api.get(path)).body
    known = document.get("definitions") or document["components"]["schemas"]

    assert {reference.rpartition("/")[2] for reference in _references(document)} <= set(known)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@pytest.mark.parametrize(
    "name",
    ["PodSpec", "Container", "PodStatus", "Volume", "ServiceSpec", "ObjectMeta", "LeaseSpec"],
)
def test_types_have_the_fields_of_the_official_client(name: str) -> None:
    model = getattr(kubernetes_asyncio.client, f"V1{name}")

    assert set(kinds()[name].fields) == set(model.attribute_map.values())


def test_every_field_has_a_known_type() -> None:
    scalars = re.compile(
        "str|bool|int32|int64|float|time|microtime|bytes|intstr|quantity|any|JSONSchemaPropsOr.*"
    )

    assert not [
        (kind.name, field.name)
        for kind in kinds().values()
        for field in kind.fields.values()
        if field.type not in kinds() and not scalars.fullmatch(field.type)
    ]
