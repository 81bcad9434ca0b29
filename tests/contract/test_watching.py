"""Watches: events, bookmarks, initial events, expired versions."""

import asyncio

import pytest

from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map, pod
from tests.contract.version_marks import STREAMED_LISTS

END = "k8s.io/initial-events-end"
INITIAL = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


async def test_watch_continues_after_the_version_of_a_list(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", group=V1)
    await gadget_api.create(path, gadget("a"))
    version = (await gadget_api.get(path)).version
    await gadget_api.create(path, gadget("b"))
    await gadget_api.patch(f"{path}/a", {"spec": {"size": 2}})
    await gadget_api.delete(f"{path}/b")
    async with gadget_api.watch(path, resourceVersion=version) as events:
        assert await events.next_named(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


@pytest.mark.parametrize("params", [{}, {"resourceVersion": "0"}], ids=["no version", "any"])
async def test_watch_without_a_version_starts_with_existing_objects(
    gadget_api: Api, params: dict[str, str]
) -> None:
    path = gadget_api.path("gadgets", group=V1)
    await gadget_api.create(path, gadget("a"))
    await gadget_api.get(path)
    async with gadget_api.watch(path, **params) as events:
        assert await events.next_named(1) == [("ADDED", "a")]


async def test_deletion_has_its_own_version(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", group=V1)
    created = await gadget_api.create(path, gadget("a"))
    version = created["metadata"]["resourceVersion"]
    await gadget_api.delete(f"{path}/a")
    async with gadget_api.watch(path, resourceVersion=version) as events:
        type_, obj = await events.next()
    assert type_ == "DELETED"
    assert int(obj["metadata"]["resourceVersion"]) > int(version)


@STREAMED_LISTS
async def test_initial_events_end_with_an_annotated_bookmark(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", group=V1)
    await gadget_api.create(path, gadget("a"))
    await gadget_api.create(path, gadget("b"))
    async with gadget_api.watch(path, **INITIAL) as events:
        assert await events.next_named(2) == [("ADDED", "a"), ("ADDED", "b")]
        type_, obj = await events.next()
    assert (type_, obj["kind"], obj["apiVersion"]) == ("BOOKMARK", "Gadget", V1)
    assert obj["metadata"]["annotations"] == {END: "true"}
    assert obj["metadata"]["resourceVersion"].isdecimal()


@STREAMED_LISTS
async def test_initial_events_of_a_built_in_kind_end_with_an_annotated_bookmark(api: Api) -> None:
    await api.create(api.path("pods"), pod("a"))
    async with api.watch(api.path("pods"), **INITIAL) as events:
        assert await events.next_named(1) == [("ADDED", "a")]
        type_, obj = await events.next()
    assert (type_, obj["kind"], obj["metadata"]["annotations"]) == (
        "BOOKMARK",
        "Pod",
        {END: "true"},
    )


@STREAMED_LISTS
async def test_changes_follow_the_initial_events(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", group=V1)
    async with gadget_api.watch(path, **INITIAL) as events:
        assert (await events.next())[0] == "BOOKMARK"
        await gadget_api.create(path, gadget("a"))
        assert await events.next_named(1) == [("ADDED", "a")]


async def test_object_that_stops_or_starts_matching_is_deleted_or_added(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.create(path, config_map(labels={"x": "1"}))
    version = created["metadata"]["resourceVersion"]
    for value in ("2", "1"):
        await api.patch(f"{path}/a", {"metadata": {"labels": {"x": value}}})
    async with api.watch(path, resourceVersion=version, labelSelector="x=1") as events:
        left = await events.next()
        entered = await events.next()
    assert [left[0], entered[0]] == ["DELETED", "ADDED"]
    # Its last matching state, at the version of the change.
    assert left[1]["metadata"]["labels"] == {"x": "1"}
    assert int(left[1]["metadata"]["resourceVersion"]) > int(version)


async def test_watch_of_one_name_shows_only_that_object(api: Api) -> None:
    path = api.path("configmaps")
    version = (await api.get(path)).version
    await api.create(path, config_map("a"))
    await api.create(path, config_map("b"))
    async with api.watch(path, resourceVersion=version, fieldSelector="metadata.name=b") as events:
        assert await events.next_named(1) == [("ADDED", "b")]


async def test_update_that_changes_nothing_is_no_event(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", group=V1)
    created = await gadget_api.create(path, gadget("a"))
    version = created["metadata"]["resourceVersion"]
    same = await gadget_api.patch(f"{path}/a", {"spec": {"size": 1}})
    assert same.version == version
    await gadget_api.create(path, gadget("b"))
    async with gadget_api.watch(path, resourceVersion=version) as events:
        assert await events.next_named(1) == [("ADDED", "b")]


async def test_watch_ends_after_its_timeout(api: Api) -> None:
    version = (await api.get(api.path("pods"))).version
    async with api.watch(api.path("pods"), resourceVersion=version, timeoutSeconds=1) as events:
        assert await events.expect_end()


async def test_any_watch_value_starts_a_watch(api: Api) -> None:
    version = (await api.get(api.path("pods"))).version
    params = {"watch": "x", "timeoutSeconds": "1", "resourceVersion": version}
    async with asyncio.timeout(5), api.session.get(api.path("pods"), params=params) as response:
        assert (response.status, await response.read()) == (200, b"")


async def test_compacted_version_is_an_expired_event(gadget_api: Api) -> None:
    if gadget_api.compact is None:
        pytest.skip("nobody knows the etcd of this cluster")
    path = gadget_api.path("gadgets", group=V1)
    await gadget_api.create(path, gadget("a"))
    await gadget_api.compact(2)
    async with gadget_api.watch(path, resourceVersion=1) as events:
        type_, status = await events.next()
        assert type_ == "ERROR"
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
        assert await events.expect_end()


async def test_compacted_continue_token_is_expired_with_a_new_one(api: Api) -> None:
    if api.compact is None:
        pytest.skip("nobody knows the etcd of this cluster")
    for name in "abc":
        await api.create(api.path("pods"), pod(name))
    first = await api.get(api.path("pods"), limit=1)
    await api.delete(api.path("pods", "b"), gracePeriodSeconds=0)
    await api.compact(int(first.version) + 1)
    token = first.body["metadata"]["continue"]
    # The real server serves pages from its cache for a while.
    answer = await api.get(api.path("pods"), **{"continue": token})
    if answer.code == 200:
        assert answer.names == ["b", "c"]
        return
    assert (answer.code, answer.body["reason"]) == (410, "Expired")
    rest = await api.get(api.path("pods"), **{"continue": answer.body["metadata"]["continue"]})
    assert rest.names == ["c"]
