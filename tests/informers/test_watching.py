"""How a reflector handles events and the end of a watch."""

import attrs
import pytest

from dlctl.informers.watch_stream import SILENT_WATCH_S, WATCH_TIMEOUT_S
from tests.informers.scripted import (
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
from tests.support.timing import ManualClock

LABELS = {"name": "pods", "group": "", "version": "v1", "resource": "pods"}


@pytest.fixture
def listing(server: ScriptedServer) -> ScriptedServer:
    """Return a server that has listed one pod at version 10."""
    server.lists.append(listed(pod("a", 3), version=10))
    return server


async def test_store_follows_events(listing: ScriptedServer) -> None:
    events = added(pod("b", 11)), modified(pod("a", 12)), deleted(pod("b", 13)), added(pod("c", 14))
    listing.watches.append(watched(*events, then="hold"))
    async with watching(listing) as watch:
        await until(lambda: watch.version == "14")
        assert watch.names == ["a", "c"]
        assert watch.versions == [
            ("a", None, "3"),
            ("b", None, "11"),
            ("a", "3", "12"),
            ("b", "13", None),
            ("c", None, "14"),
        ]


async def test_version_advances_with_every_event_and_bookmark(listing: ScriptedServer) -> None:
    listing.watches += [
        watched(added(pod("b", 11))),
        watched(modified(pod("b", 12))),
        watched(bookmark(20)),
        watched(deleted(pod("b", 21))),
    ]
    async with watching(listing) as watch:
        await until(lambda: len(listing.asked("watch")) == 5)
        assert watch.version == "21"
        assert watch.sample("informer_store_resource_version", **LABELS) == 21
        assert watch.sample("reflector_last_resource_version", name="pods") == 21
        assert watch.sample("reflector_items_per_list_sum", name="pods") == 1
        assert watch.sample("reflector_items_per_watch_sum", name="pods") == 4
    asked = [query["resourceVersion"] for query in listing.asked("watch")]
    assert asked == ["10", "11", "12", "20", "21"]


async def test_watch_is_reopened_at_once_after_a_normal_close_without_a_relist(
    listing: ScriptedServer,
) -> None:
    listing.watches += [watched(bookmark(11 + n)) for n in range(4)]
    async with watching(listing) as watch:
        await until(lambda: len(listing.asked("watch")) == 5)
        assert watch.backoff.pauses == []
    assert len(listing.asked("list")) == 1


async def test_broken_connection_counts_as_a_normal_close(listing: ScriptedServer) -> None:
    listing.watches += [watched(added(pod("b", 11)), then="cut")]
    async with watching(listing) as watch:
        await until(lambda: len(listing.asked("watch")) == 2)
        assert watch.backoff.pauses == []
        assert watch.names == ["a", "b"]
    assert len(listing.asked("list")) == 1


async def test_watch_timeout_is_between_five_and_ten_minutes(listing: ScriptedServer) -> None:
    listing.watches += [watched(bookmark(11 + n)) for n in range(20)]
    async with watching(listing):
        await until(lambda: len(listing.asked("watch")) == 21)
    durations = [int(query["timeoutSeconds"]) for query in listing.asked("watch")]
    assert WATCH_TIMEOUT_S[0] <= min(durations) < max(durations) <= WATCH_TIMEOUT_S[1]
    assert all(query["allowWatchBookmarks"] == "true" for query in listing.asked("watch"))


async def test_throttled_watch_is_retried_after_a_pause_without_a_relist(
    listing: ScriptedServer,
) -> None:
    listing.watches += [
        error_response(429, "TooManyRequests", retryAfterSeconds=7),
        watched(failure(429, "TooManyRequests", retryAfterSeconds=3)),
        error_response(429, "TooManyRequests", retryAfterSeconds=7),
        watched(failure(429, "TooManyRequests", retryAfterSeconds=3)),
    ]
    async with watching(listing) as watch:
        await until(lambda: len(listing.asked("watch")) == 5)
        assert watch.backoff.pauses == [7, 3, 7, 3]
    assert len(listing.asked("list")) == 1


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(failure(410, "Expired"), id="expired"),
        pytest.param(failure(410, "Gone"), id="gone"),
        pytest.param(failure(500, "InternalError"), id="internal error"),
        pytest.param(failure(500, "StoreReadError"), id="object that the server cannot decode"),
        pytest.param(b"<html>\n", id="not json"),
    ],
)
async def test_error_event_causes_a_relist_after_a_pause(
    server: ScriptedServer, line: bytes
) -> None:
    server.lists += [listed(pod("a", 3), version=10), listed(pod("b", 11), version=20)]
    server.watches += [watched(line)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert watch.backoff.pauses == [0]
        assert watch.versions == [("a", None, "3"), ("a", "3", None), ("b", None, "11")]
    assert len(server.asked("list")) == 2


async def test_watch_rejected_for_another_reason_causes_a_relist(
    server: ScriptedServer,
) -> None:
    server.lists += [listed(version=10), listed(version=20)]
    server.watches += [error_response(403, "Forbidden")]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert len(watch.backoff.pauses) == 1


async def test_watch_that_ends_at_once_without_events_causes_a_relist_after_a_pause(
    server: ScriptedServer,
) -> None:
    server.lists += [listed(version=10), listed(version=20)]
    server.watches += [watched()]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert len(watch.backoff.pauses) == 1
        assert watch.sample("reflector_short_watches_total", name="pods") == 1


@attrs.define
class TickingClock(ManualClock):
    """A clock that moves with each look at it."""

    step_s: float = 1.0

    def monotonic(self) -> float:
        self.seconds += self.step_s
        return self.seconds


async def test_long_watch_without_events_causes_no_relist(listing: ScriptedServer) -> None:
    listing.watches += [watched(), watched()]
    async with watching(listing, clock=TickingClock()) as watch:
        await until(lambda: len(listing.asked("watch")) == 3)
        assert watch.backoff.pauses == []


@pytest.mark.parametrize("then", ["close", "cut"])
async def test_watch_without_even_a_bookmark_causes_a_relist_as_after_a_restore(
    server: ScriptedServer, then: str
) -> None:
    server.lists += [
        listed(pod("a", 3), pod("b", 10), version=10),
        error_response(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}]),
        listed(pod("a", 3), version=5),
    ]
    server.watches += [watched(then=then)]
    async with watching(server, clock=TickingClock(step_s=SILENT_WATCH_S)) as watch:
        await until(lambda: watch.version == "5")
        assert watch.names == ["a"]
        await until(lambda: server.asked("watch")[-1]["resourceVersion"] == "5")


async def test_event_of_an_unknown_type_is_skipped(
    listing: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    strange = b'{"type":"RENAMED","object":{"metadata":{"name":"a"}}}\n'
    listing.watches += [watched(strange, added(pod("b", 12)), then="hold")]
    async with watching(listing) as watch:
        await until(lambda: watch.version == "12")
        assert watch.names == ["a", "b"]
    assert "unknown type" in caplog.text


async def test_malformed_object_of_an_event_keeps_the_watch_and_its_last_state(
    listing: ScriptedServer,
) -> None:
    broken = modified(pod("a", 12, labels={"x": 1}))
    listing.watches += [watched(broken, then="hold")]
    async with watching(listing) as watch:
        await until(lambda: watch.version == "12")
        assert watch.versions == [("a", None, "3")]
        assert watch.names == ["a"]
        assert watch.sample("informer_malformed_objects_total", **LABELS) == 1
    assert len(listing.asked("watch")) == 1


async def test_deletion_of_a_malformed_object_is_notified_with_its_last_state(
    listing: ScriptedServer,
) -> None:
    listing.watches += [watched(deleted(pod("a", 12, labels={"x": 1})), then="hold")]
    async with watching(listing) as watch:
        await until(lambda: watch.version == "12")
        assert watch.versions == [("a", None, "3"), ("a", "3", None)]


async def test_event_without_a_name_is_malformed(listing: ScriptedServer) -> None:
    nameless = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"12"}}}\n'
    listing.watches += [watched(nameless, then="hold")]
    async with watching(listing) as watch:
        await until(lambda: watch.version == "12")
        assert watch.names == ["a"]


async def test_cancelled_informer_leaves_no_watch_open(listing: ScriptedServer) -> None:
    async with watching(listing):
        await until(lambda: listing.open == 1)
    await until(lambda: listing.open == 0)


async def test_watch_is_closed_however_it_ends(server: ScriptedServer) -> None:
    server.lists += [listed(version=10)]
    server.watches += [
        watched(bookmark(11), failure(410, "Expired"), then="hold"),
        watched(bookmark(12), b"}\n", then="hold"),
        watched(bookmark(13), failure(429, "TooManyRequests"), then="hold"),
    ]
    async with watching(server):
        await until(lambda: len(server.asked("watch")) == 4)
        await until(lambda: server.open == 1)
