"""Two versions of one resource, of which only the one that is not stored has a default."""

import uuid
from collections.abc import AsyncIterator

import attrs
import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import CRDS, Api
from tests.contract.definitions import definition, open_version
from tests.contract.field_managers import APPLY
from tests.local.apiserver.raw_client import Answer

_SIZE = {"type": "integer"}
_KEPT = {
    "rule": "has(self.mark) == has(oldSelf.mark)",
    "message": "the mark is neither added nor removed",
}


def version(name: str, mark: JSON, *, storage: bool, **spec: object) -> JSON:
    schema = {"type": "object", "properties": {"size": _SIZE, "mark": mark}, **spec}
    whole = {"type": "object", "properties": {"spec": schema, "status": {"type": "object"}}}
    return {
        **open_version(name, storage=storage),
        "schema": {"openAPIV3Schema": whole},
        "subresources": {"status": {}},
    }


@attrs.frozen
class Things:
    """The objects of one CRD with the versions v1, which is stored, and v2."""

    api: Api
    group: str

    def path(self, api_version: str, name: str = "") -> str:
        return self.api.path("things", name, group=f"{self.group}/{api_version}")

    def wire(self, api_version: str) -> JSON:
        types = {"apiVersion": f"{self.group}/{api_version}", "kind": "Thing"}
        return {**types, "metadata": {"name": "a"}, "spec": {"size": 1}}

    async def create(self, api_version: str) -> JSON:
        return await self.api.create(self.path(api_version), self.wire(api_version))

    async def patch(self, api_version: str, body: JSON, subresource: str = "") -> Answer:
        name = f"a/{subresource}" if subresource else "a"
        return await self.api.patch(self.path(api_version, name), body)

    async def spec(self, api_version: str = "v1") -> JSON:
        spec: JSON = (await self.api.get(self.path(api_version, "a"))).body["spec"]
        return spec

    async def versions_by_manager(self) -> dict[str, tuple[str, bool]]:
        """Return the version of each manager, and whether it manages the mark."""
        body = (await self.api.get(self.path("v1", "a"))).body
        return {
            entry["manager"]: (
                entry["apiVersion"].removeprefix(f"{self.group}/"),
                "f:mark" in entry["fieldsV1"].get("f:spec", {}),
            )
            for entry in body["metadata"]["managedFields"]
        }


@pytest.fixture(params=[()], ids=["no rules"])
async def things(api: Api, request: pytest.FixtureRequest) -> AsyncIterator[Things]:
    group, rules = f"g{uuid.uuid4().hex[:8]}.dlctl.dev", list(request.param)
    with_rules = {"x-kubernetes-validations": rules} if rules else {}
    versions = [
        version("v1", {"type": "string"}, storage=True, **with_rules),
        version("v2", {"type": "string", "default": "/x"}, storage=False, **with_rules),
    ]
    crd = definition("things", group=group, versions=versions)
    await api.define(crd)
    yield Things(api, group)
    await api.delete(f"{CRDS}/things.{group}")


with_transition_rule = pytest.mark.parametrize("things", [(_KEPT,)], indirect=True, ids=["rule"])


@pytest.mark.parametrize(
    ("api_version", "expected"), [("v1", {"size": 1}), ("v2", {"size": 1, "mark": "/x"})]
)
async def test_object_has_the_defaults_of_the_version_that_created_it(
    things: Things, api_version: str, expected: JSON
) -> None:
    await things.create(api_version)
    assert [await things.spec(each) for each in ("v1", "v2")] == [expected, expected]


@pytest.mark.parametrize("change", [{"spec": {"size": 2}}, {"metadata": {"labels": {"a": "b"}}}])
async def test_any_patch_adds_the_defaults_of_its_version(things: Things, change: JSON) -> None:
    await things.create("v1")
    assert (await things.patch("v1", change)).code == 200
    assert "mark" not in await things.spec()

    assert (await things.patch("v2", change)).code == 200

    assert (await things.spec())["mark"] == "/x"


async def test_patch_of_the_status_adds_no_defaults_to_the_spec(things: Things) -> None:
    await things.create("v1")
    assert (await things.patch("v2", {"status": {}}, "status")).code == 200
    assert await things.spec() == {"size": 1}


@with_transition_rule
async def test_transition_rule_sees_the_old_object_without_the_defaults(things: Things) -> None:
    await things.create("v1")
    refused = await things.patch("v2", {"spec": {"size": 2}})
    assert refused.code == 422
    assert _KEPT["message"] in refused.body["message"]
    assert (await things.patch("v2", {"status": {}}, "status")).code == 200
    assert (await things.patch("v1", {"spec": {"size": 2}})).code == 200


@with_transition_rule
async def test_transition_rule_sees_what_an_update_of_the_other_version_drops(
    things: Things,
) -> None:
    created = await things.create("v2")
    sent = {**created, "apiVersion": f"{things.group}/v1", "spec": {"size": 1}}
    refused = await things.api.put(things.path("v1", "a"), sent)
    assert (refused.code, _KEPT["message"] in refused.body["message"]) == (422, True)


async def test_creator_manages_the_default_and_editors_have_their_version(things: Things) -> None:
    await things.api.post(things.path("v2"), things.wire("v2"), fieldManager="creator")
    await things.api.patch(things.path("v1", "a"), {"spec": {"size": 3}}, fieldManager="editor")
    managed = await things.versions_by_manager()
    assert managed == {"creator": ("v2", True), "editor": ("v1", False)}


async def test_applier_manages_no_default(things: Things) -> None:
    await things.api.patch(things.path("v2", "a"), things.wire("v2"), APPLY, fieldManager="applier")
    assert (await things.spec())["mark"] == "/x"
    assert await things.versions_by_manager() == {"applier": ("v2", False)}


async def test_former_storage_version_has_to_stay(things: Things) -> None:
    path = f"{CRDS}/things.{things.group}"
    crd = (await things.api.get(path)).body
    v1, v2 = crd["spec"]["versions"]
    swapped = [{**v1, "storage": False}, {**v2, "storage": True}]
    assert (await things.api.patch(path, {"spec": {"versions": swapped}})).code == 200
    refused = await things.api.patch(path, {"spec": {"versions": swapped[1:]}})
    assert refused.code == 422
    assert "status.storedVersions[0]" in refused.body["message"]
    migrated = {"status": {"storedVersions": ["v2"]}}
    assert (await things.api.patch(f"{path}/status", migrated)).code == 200
    assert (await things.api.patch(path, {"spec": {"versions": swapped[1:]}})).code == 200
