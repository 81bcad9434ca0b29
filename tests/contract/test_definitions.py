"""The lifecycle of a CRD: established, served in its versions, changed, deleted."""

import asyncio
import json
import uuid

import pytest

from tests.contract.api import CRDS, Api, is_established
from tests.contract.definitions import definition, open_version, version_of
from tests.local.apiserver.raw_client import Events


@pytest.fixture
def group() -> str:
    # CRDs are cluster-scoped, so each test has its own group.
    return f"g{uuid.uuid4().hex[:8]}.dlctl.dev"


async def test_crd_is_defaulted_and_established(api: Api, group: str) -> None:
    await api.create(CRDS, definition("things", group=group, short_names=["tg"]))
    path = f"{CRDS}/things.{group}"
    crd = (await api.wait_until(path, is_established)).body
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    assert crd["spec"]["names"] == names | {"shortNames": ["tg"], "categories": ["all"]}
    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert crd["status"]["storedVersions"] == ["v1"]
    conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    await api.delete(path)


async def test_taken_kind_is_not_accepted(api: Api, group: str) -> None:
    await api.define(definition("things", group=group))
    other = definition("others", group=group)
    other["spec"]["names"] |= {"kind": "Thing", "listKind": "ThingList"}
    await api.create(CRDS, other)
    path = f"{CRDS}/others.{group}"
    crd = (await api.wait_until(path, lambda a: bool(a.body["status"].get("conditions")))).body
    conditions = {each["type"]: each for each in crd["status"]["conditions"]}
    assert conditions["NamesAccepted"]["status"] == "False"
    assert conditions["Established"]["status"] == "False"
    for name in ("things", "others"):
        await api.delete(f"{CRDS}/{name}.{group}")


async def test_object_is_served_in_each_version(api: Api, group: str) -> None:
    versions = [open_version("v1"), open_version("v2", storage=False)]
    await api.define(definition("things", group=group, versions=versions))
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {}}
    await api.create(api.path("things", group=f"{group}/v1"), thing)
    answer = await api.get(api.path("things", "a", group=f"{group}/v2"))
    assert (answer.code, answer.body["apiVersion"]) == (200, f"{group}/v2")
    await api.delete(f"{CRDS}/things.{group}")


async def test_crd_is_deleted_with_its_objects(api: Api, group: str) -> None:
    await api.define(definition("things", group=group))
    path = api.path("things", group=f"{group}/v1")
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    await api.create(path, thing)
    deleted = await api.delete(f"{CRDS}/things.{group}")
    assert deleted.code == 200
    await api.wait_gone(f"{CRDS}/things.{group}")
    await api.wait_gone(path)


async def test_watch_ends_with_its_crd_after_the_last_event(api: Api, group: str) -> None:
    await api.define(definition("things", group=group))
    path = api.path("things", group=f"{group}/v1")
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    await api.create(path, thing)
    async with api.watch(path) as events:
        assert await events.next_named(1) == [("ADDED", "a")]
        await api.delete(f"{CRDS}/things.{group}")
        assert ("DELETED", "a") in await until_end(events)
    await api.wait_gone(path)


async def test_watch_ends_when_its_crd_changes(api: Api, group: str) -> None:
    await api.define(definition("things", group=group))
    path = api.path("things", group=f"{group}/v1")
    async with api.watch(path) as events:
        # The real server watches objects a moment after it has sent the header.
        thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
        await api.create(path, thing)
        assert await events.next_named(1) == [("ADDED", "a")]
        schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
        versions = [version_of(schema)]
        await api.patch(f"{CRDS}/things.{group}", {"spec": {"versions": versions}})
        assert await events.expect_end()
    listed = await api.wait_until(path, lambda answer: answer.code == 200)
    assert listed.names == ["a"]
    await api.delete(f"{CRDS}/things.{group}")


async def test_watch_goes_on_when_only_metadata_of_its_crd_changes(api: Api, group: str) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": "self.spec != oldSelf.spec"}],
    }
    await api.define(definition("things", group=group, versions=[version_of(schema)]))
    path = api.path("things", group=f"{group}/v1")
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    await api.create(path, thing)
    async with api.watch(path) as events:
        assert await events.next_named(1) == [("ADDED", "a")]
        await api.patch(f"{CRDS}/things.{group}", {"metadata": {"labels": {"a": "b"}}})
        await api.delete(f"{path}/a")
        assert await events.next_named(1) == [("DELETED", "a")]
        await api.create(path, thing)
        assert await events.next_named(1) == [("ADDED", "a")]
    await api.delete(f"{CRDS}/things.{group}")


async def until_end(events: Events) -> list[tuple[str, str]]:
    """Return type and name of all events that are left."""
    found = []
    async with asyncio.timeout(10):
        async for line in events.response.content:
            event = json.loads(line)
            found.append((event["type"], event["object"]["metadata"]["name"]))
    return found


async def test_discovery_shows_what_is_served(api: Api, group: str) -> None:
    await api.define(definition("things", group=group, short_names=["tg"]))
    answer = await api.wait_until(f"/apis/{group}/v1", lambda a: a.code == 200)
    assert (answer.body["kind"], answer.body["groupVersion"]) == ("APIResourceList", f"{group}/v1")
    [resource] = answer.body["resources"]
    assert resource["name"] == "things"
    assert (resource["singularName"], resource["kind"]) == ("thing", "Thing")
    assert (resource["namespaced"], resource["shortNames"]) == (True, ["tg"])
    assert set(resource["verbs"]) == {
        *("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    }
    whole = await api.wait_until(f"/apis/{group}", lambda a: a.code == 200)
    assert (whole.body["kind"], whole.body["name"]) == ("APIGroup", group)
    assert whole.body["preferredVersion"] == {"groupVersion": f"{group}/v1", "version": "v1"}
    await api.delete(f"{CRDS}/things.{group}")


async def test_group_of_a_custom_resource_may_end_like_those_of_kubernetes(api: Api) -> None:
    crd = definition("toys", group="contract.k8s.io")
    approval = {"api-approved.kubernetes.io": "unapproved, for a test"}
    await api.define({**crd, "metadata": {**crd["metadata"], "annotations": approval}})
    path = api.path("toys", group="contract.k8s.io/v1")
    wire = {"apiVersion": "contract.k8s.io/v1", "kind": "Toy", "metadata": {"name": "a"}}
    assert (await api.create(path, wire))["metadata"]["generation"] == 1
    (listed,) = (await api.get(path)).body["items"]
    assert (listed["apiVersion"], listed["kind"]) == ("contract.k8s.io/v1", "Toy")
