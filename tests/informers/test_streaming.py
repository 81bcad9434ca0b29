"""Lists that are streamed at the beginning of a watch."""

import asyncio

import pytest
from aiohttp import web

from dlctl.informers.reflector import MAX_STREAMED_LIST_S
from tests.informers.scripted import (
    INITIAL_END,
    ScriptedServer,
    added,
    bookmark,
    deleted,
    error_response,
    failure,
    listed,
    modified,
    pod,
    watched,
)
from tests.informers.watching import until, watching


async def test_only_an_annotated_bookmark_ends_the_initial_objects(
    server: ScriptedServer,
) -> None:
    not_yet = bookmark(11), bookmark(12, {"k8s.io/initial-events-end": "false"})
    server.streams += [
        watched(added(pod("a")), *not_yet, added(pod("b")), bookmark(13, INITIAL_END), then="hold")
    ]
    async with watching(server) as watch:
        assert watch.names == ["a", "b"]
        assert watch.version == "13"
        assert all(change.initial for change in watch.changes)
    assert server.asked("list") == []


async def test_streamed_list_requests_any_state_not_older(server: ScriptedServer) -> None:
    server.streams += [
        watched(bookmark(13, INITIAL_END), failure(410, "Expired")),
        watched(bookmark(20, INITIAL_END), then="hold"),
    ]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
    first, second = server.asked("stream")
    assert first["sendInitialEvents"] == first["allowWatchBookmarks"] == "true"
    assert first["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in first
    assert second["resourceVersion"] == "13"


async def test_changes_before_the_end_are_part_of_the_list(server: ScriptedServer) -> None:
    events = added(pod("a", 1)), added(pod("b", 2)), modified(pod("a", 3)), deleted(pod("b", 4))
    server.streams += [watched(*events, bookmark(13, INITIAL_END), then="hold")]
    async with watching(server) as watch:
        assert watch.versions == [("a", None, "3")]


async def test_events_after_the_list_come_on_the_same_stream(server: ScriptedServer) -> None:
    server.streams += [
        watched(added(pod("a")), bookmark(13, INITIAL_END), added(pod("b", 14)), then="hold")
    ]
    async with watching(server) as watch:
        await until(lambda: watch.version == "14")
        assert watch.names == ["a", "b"]
        assert [change.initial for change in watch.changes] == [True, False]
    assert server.asked("watch") == []


async def test_stream_that_ends_after_the_list_is_followed_by_a_plain_watch(
    server: ScriptedServer,
) -> None:
    server.streams += [watched(bookmark(13, INITIAL_END), added(pod("b", 14)))]
    async with watching(server) as watch:
        await until(lambda: server.asked("watch"))
        assert watch.backoff.pauses == []
    assert server.asked("watch")[0]["resourceVersion"] == "14"


async def test_stream_that_ends_before_the_list_starts_over(server: ScriptedServer) -> None:
    server.streams += [
        watched(added(pod("a", 50))),
        watched(added(pod("c", 30)), bookmark(60, INITIAL_END), then="hold"),
    ]
    async with watching(server) as watch:
        assert watch.names == ["c"]
        assert watch.backoff.pauses == []
    # Initial objects are not ordered, so a watch cannot continue from their versions.
    assert all("resourceVersion" not in query for query in server.asked("stream"))


async def test_streams_that_end_before_the_list_are_replaced_by_a_plain_list_at_once(
    server: ScriptedServer,
) -> None:
    server.streams += [
        watched(added(pod("a", 50))),
        watched(added(pod("b", 40)), then="cut"),
        watched(added(pod("d")), bookmark(20, INITIAL_END), then="hold"),
    ]
    server.lists += [listed(pod("c"), version=13)]
    async with watching(server) as watch:
        assert watch.names == ["c"]
        assert watch.backoff.pauses == []
        await until(lambda: server.asked("watch"))
    assert len(server.asked("stream")) == 2
    assert server.asked("watch")[0]["resourceVersion"] == "13"


@pytest.mark.looptime(noop_cycles=8)
async def test_stream_of_bookmarks_without_an_end_is_replaced_by_a_list(
    server: ScriptedServer,
) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bookmark(12))
            await asyncio.sleep(60)

    server.streams += [endless, endless]
    server.lists += [listed(pod("c"), version=13)]
    async with watching(server, synced=False) as watch:
        async with asyncio.timeout(3 * MAX_STREAMED_LIST_S):
            await watch.informer.wait_synced()
        assert watch.names == ["c"]
    assert len(server.asked("stream")) == 2


async def test_throttled_stream_is_retried_after_a_pause(server: ScriptedServer) -> None:
    server.streams += [
        error_response(429, "TooManyRequests", retryAfterSeconds=7),
        watched(failure(429, "TooManyRequests", retryAfterSeconds=3)),
        watched(bookmark(13, INITIAL_END), then="hold"),
    ]
    async with watching(server) as watch:
        assert watch.backoff.pauses == [7, 3]
    assert server.asked("list") == []


async def test_stream_at_an_expired_version_falls_back_to_the_newest_at_once(
    server: ScriptedServer,
) -> None:
    too_large = [{"reason": "ResourceVersionTooLarge"}]
    server.streams += [
        watched(bookmark(13, INITIAL_END), failure(410, "Expired")),
        error_response(504, "Timeout", causes=too_large),
        watched(bookmark(5, INITIAL_END), then="hold"),
    ]
    async with watching(server) as watch:
        await until(lambda: watch.version == "5")
        assert len(watch.backoff.pauses) == 1
    assert "resourceVersion" not in server.asked("stream")[2]


async def test_stream_that_expires_without_a_version_is_retried_after_a_pause(
    server: ScriptedServer,
) -> None:
    server.streams += [
        error_response(410, "Expired"),
        watched(bookmark(13, INITIAL_END), then="hold"),
    ]
    async with watching(server) as watch:
        assert len(watch.backoff.pauses) == 1
    assert server.asked("list") == []


async def test_lists_are_paged_if_the_server_does_not_stream_them(server: ScriptedServer) -> None:
    server.lists += [listed(pod("a"), version=10)]
    server.streams += [error_response(422, "Invalid", "sendInitialEvents is forbidden")]
    async with watching(server) as watch:
        assert watch.names == ["a"]
        assert watch.backoff.pauses == []
        await until(lambda: server.asked("watch"))


async def test_streaming_is_retried_after_a_failure(server: ScriptedServer) -> None:
    server.lists += [listed(pod("a"), version=10)]
    server.streams += [
        watched(added(pod("b")), failure(500, "InternalError")),
        watched(added(pod("c")), bookmark(20, INITIAL_END), then="hold"),
    ]
    server.watches += [watched(failure(410, "Expired"))]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert watch.names == ["c"]
        assert watch.versions[0] == ("a", None, "1")


async def test_throttled_watch_after_a_streamed_list_causes_no_relist(
    server: ScriptedServer,
) -> None:
    throttled = failure(429, "TooManyRequests", retryAfterSeconds=3)
    server.streams += [watched(bookmark(13, INITIAL_END), throttled)]
    async with watching(server) as watch:
        await until(lambda: server.asked("watch"))
        assert watch.backoff.pauses == [3]
    assert len(server.asked("stream")) == 1


async def test_malformed_object_that_is_deleted_before_the_end_is_not_kept(
    server: ScriptedServer,
) -> None:
    broken = pod("a", 14, labels={"x": 1})
    server.streams += [
        watched(added(pod("a")), bookmark(13, INITIAL_END), failure(410, "Expired")),
        watched(added(broken), deleted(broken), bookmark(20, INITIAL_END), then="hold"),
    ]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert watch.names == []


async def test_malformed_initial_object_is_reported_separately(server: ScriptedServer) -> None:
    broken = added(pod("b", 2, labels={"x": 1}))
    server.streams += [watched(added(pod("a")), broken, bookmark(13, INITIAL_END), then="hold")]
    async with watching(server) as watch:
        assert watch.names == ["a"]
