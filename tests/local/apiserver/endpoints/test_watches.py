import asyncio

import pytest

from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    RawClient,
    config_map,
    pod,
    until,
    widget,
)


async def test_watch_from_a_version_sends_later_changes(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    async with api.watch(CONFIG_MAPS, resourceVersion=created["metadata"]["resourceVersion"]) as w:
        await api.create(CONFIG_MAPS, config_map("b"))
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}})
        await api.delete(f"{CONFIG_MAPS}/b")
        assert await w.next_named(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_deleted_object_is_shown_with_the_version_of_its_deletion(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    version = created["metadata"]["resourceVersion"]
    async with api.watch(CONFIG_MAPS, resourceVersion=version) as events:
        await api.delete(f"{CONFIG_MAPS}/a")
        _, last = await events.next()
        assert int(last["metadata"]["resourceVersion"]) > int(version)
        assert last["data"] == created["data"]


@pytest.mark.parametrize("params", [{}, {"resourceVersion": "0"}])
async def test_watch_without_a_version_begins_with_existing_objects(
    api: RawClient, params: dict[str, str]
) -> None:
    await api.create(PODS, pod("b"))
    await api.create(PODS, pod("a"))
    async with api.watch(PODS, **params) as events:
        assert await events.next_named(2) == [("ADDED", "a"), ("ADDED", "b")]
        await api.create(PODS, pod("c"))
        assert await events.next_named(1) == [("ADDED", "c")]


async def test_watch_has_the_kind_in_each_object(api: RawClient) -> None:
    async with api.watch(PODS) as events:
        await api.create(PODS, pod("a"))
        _, obj = await events.next()
        assert (obj["apiVersion"], obj["kind"]) == ("v1", "Pod")


async def test_watch_is_limited_to_its_namespace(api: RawClient) -> None:
    async with api.watch(PODS) as events:
        await api.create("/api/v1/namespaces/kube-system/pods", pod("far"))
        await api.create(PODS, pod("near"))
        assert await events.next_named(1) == [("ADDED", "near")]


async def test_object_that_starts_matching_is_added_and_that_stops_is_deleted(
    api: RawClient,
) -> None:
    await api.create(PODS, pod("a"))
    async with api.watch(PODS, labelSelector="app=x") as events:
        path = f"{PODS}/a"
        await api.patch(path, {"metadata": {"labels": {"app": "x"}}})
        await api.patch(path, {"metadata": {"labels": {"b": "c"}}})
        left = await api.patch(path, {"metadata": {"labels": {"app": "y"}}})
        types = [await events.next() for _ in range(3)]
        assert [type_ for type_, _ in types] == ["ADDED", "MODIFIED", "DELETED"]
        last = types[-1][1]["metadata"]
        assert last["labels"] == {"app": "x", "b": "c"}
        assert last["resourceVersion"] == left.version


async def test_field_selector_makes_transitions_too(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    async with api.watch(PODS, fieldSelector="spec.nodeName=n") as events:
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
        await api.post(f"{PODS}/a/binding", binding)
        assert await events.next_named(1) == [("ADDED", "a")]


async def test_initial_events_end_with_the_annotated_bookmark(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    async with api.watch(
        PODS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as events:
        assert await events.next_named(1) == [("ADDED", "a")]
        type_, bookmark = await events.next()
        assert type_ == "BOOKMARK"
        assert bookmark == {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": str(api.server.storage.revision),
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        }


async def test_initial_events_can_be_declined(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    params = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    async with api.watch(PODS, **params) as events:
        await api.create(PODS, pod("b"))
        assert await events.next_named(1) == [("ADDED", "b")]


async def test_bookmarks_have_the_version_of_an_idle_watch(api: RawClient) -> None:
    async with api.watch(PODS, allowWatchBookmarks="true") as events:
        await api.create(CONFIG_MAPS, config_map("a"))
        type_, bookmark = await events.next()
        assert type_ == "BOOKMARK"
        assert int(bookmark["metadata"]["resourceVersion"]) >= api.server.storage.revision - 1
        assert "annotations" not in bookmark["metadata"]


async def test_bookmarks_are_sent_only_on_request(api: RawClient) -> None:
    async with api.watch(PODS) as events:
        # Longer than the interval of bookmarks.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await events.next()


async def test_expired_version_is_an_error_event(api: RawClient) -> None:
    for name in "abc":
        await api.create(PODS, pod(name))
    api.server.storage.compact(api.server.storage.revision)
    async with api.watch(PODS, resourceVersion=2) as events:
        type_, error = await events.next()
        assert type_ == "ERROR"
        assert (error["code"], error["reason"]) == (410, "Expired")
        assert error["message"].startswith("too old resource version: 2 (")
        assert await events.expect_end()


async def test_future_version_is_awaited(api: RawClient) -> None:
    version = api.server.storage.revision
    async with api.watch(PODS, resourceVersion=version + 1) as events:
        await api.create(PODS, pod("a"))
        await api.create(PODS, pod("b"))
        assert await events.next_named(1) == [("ADDED", "b")]


async def test_watch_from_a_future_version_gets_no_bookmarks_until_it_is_reached(
    api: RawClient,
) -> None:
    version = api.server.storage.revision
    params = {"resourceVersion": version + 1, "allowWatchBookmarks": "true"}
    async with api.watch(PODS, **params) as events:
        # Longer than the interval of bookmarks.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await events.next()
        await api.create(PODS, pod("a"))
        type_, bookmark = await events.next()
        assert (type_, bookmark["metadata"]["resourceVersion"]) == ("BOOKMARK", str(version + 1))


async def test_version_from_the_future_is_too_large_for_initial_events(api: RawClient) -> None:
    params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    version = api.server.storage.revision + 10
    async with api.watch(PODS, resourceVersion=version, **params) as events:
        type_, error = await events.next()
        assert type_ == "ERROR"
        assert error["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"sendInitialEvents": "true"}, id="initial events without match"),
        pytest.param({"resourceVersionMatch": "NotOlderThan"}, id="match without initial events"),
    ],
)
async def test_contradictory_options_are_invalid(api: RawClient, params: dict[str, str]) -> None:
    answer = await api.get(PODS, watch="true", **params)
    assert answer.code == 422
    assert "resourceVersionMatch: Forbidden: " in answer.body["message"]


async def test_watch_ends_cleanly_at_its_timeout(api: RawClient) -> None:
    answer = await api.session.get(PODS, params={"watch": "1", "timeoutSeconds": "1"})
    assert await answer.read() == b""


async def test_watch_sends_a_bookmark_before_its_timeout(api: RawClient) -> None:
    params = {"watch": "1", "timeoutSeconds": "1", "allowWatchBookmarks": "true"}
    answer = await api.session.get(PODS, params=params)
    assert b"BOOKMARK" in await answer.read()


async def test_update_with_equal_content_sends_no_event(widgets: RawClient) -> None:
    await widgets.create(WIDGETS, widget("a", spec={"n": 1}))
    version = widgets.server.storage.revision
    async with widgets.watch(WIDGETS, resourceVersion=version) as events:
        await widgets.patch(f"{WIDGETS}/a", {"spec": {"n": 1}})
        await widgets.patch(f"{WIDGETS}/a", {"spec": {"n": 2}})
        _, obj = await events.next()
        assert obj["spec"] == {"n": 2}


async def test_disconnected_client_frees_its_watch(api: RawClient) -> None:
    storage = api.server.storage
    async with api.watch(PODS):
        assert storage.watchers == 1
    await until(lambda: storage.watchers == 0)


async def test_table_rows_are_watched(api: RawClient) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with api.session.get(PODS, params={"watch": "1"}, headers=accept) as response:
        await api.create(PODS, pod("a"))
        line = await response.content.readline()
        assert b'"kind":"Table"' in line


async def test_non_numeric_version_is_a_server_error(api: RawClient) -> None:
    answer = await api.get(PODS, watch="true", resourceVersion="x")
    assert (answer.code, answer.body.get("reason")) == (500, None)
