"""Unchanged values, which alone may violate a newer rule or schema."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import definition

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
OBJECT = {"type": "object", **OPEN}
ITEM = {**OBJECT, "required": ["name"], "properties": {"name": {"type": "string"}}}
PROPERTIES: JSON = {
    "size": {"type": "integer"},
    "open": OBJECT,
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "any": {"type": "object", "additionalProperties": OPEN},
    "items": {"type": "array", "items": OBJECT},
    "keyed": {
        "type": "array",
        "items": ITEM,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
}


def version(name: str, **spec: Any) -> JSON:
    properties = {"spec": {"type": "object", "properties": PROPERTIES, **spec}, "status": OBJECT}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }


async def store(api: Api, spec: JSON) -> str:
    """Store an object that violates the schema and rules of v2; return its path in v2."""
    group = f"{api.namespace}.dlctl.dev"
    rule = {"rule": "!has(self.size) || self.size != 7", "message": "not seven"}
    versions = [
        version("v1"),
        version("v2", maxProperties=1, **{"x-kubernetes-validations": [rule]}),
    ]
    await api.define(definition("sprockets", group=group, versions=versions))
    wire = {"apiVersion": f"{group}/v1", "kind": "Sprocket", "metadata": {"name": "a"}}
    await api.create(api.path("sprockets", group=f"{group}/v1"), {**wire, "spec": spec})
    return api.path("sprockets", "a", group=f"{group}/v2")


@pytest.mark.parametrize(
    ("spec", "is_unchanged"),
    [
        pytest.param({"labels": {"a": "b"}}, True, id="map of strings"),
        pytest.param({"any": {"a": 1, "b": [{"c": 2}]}}, True, id="map of anything"),
        pytest.param({"any": {"a": {"b": 1}}}, False, id="object in a map of anything"),
        pytest.param({"open": {}}, True, id="open object that is empty"),
        pytest.param({"open": {"a": 1}}, False, id="field without a schema"),
        pytest.param({"items": [{"a": 1}]}, True, id="field without a schema in a list"),
        pytest.param({"keyed": [{"name": "a"}]}, True, id="list by keys"),
        pytest.param({"keyed": [{"name": "a", "b": 1}]}, False, id="the same in a list by keys"),
    ],
)
async def test_object_with_schemaless_fields_is_never_unchanged(
    api: Api, spec: JSON, is_unchanged: bool
) -> None:
    path = await store(api, {"size": 7, **spec})
    status = await api.patch(f"{path}/status", {"status": {"a": 1}})
    assert status.code == (200 if is_unchanged else 422), status.body
    labels = await api.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert labels.code == (200 if is_unchanged else 422), labels.body
    if not is_unchanged:
        assert "not seven" in status.body["message"]
        assert "must have at most 1 item" in labels.body["message"]
