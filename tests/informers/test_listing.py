"""Which versions and pages a reflector requests when it lists."""

from typing import Any

import pytest

from dlctl.api.meta import ObjectKey
from dlctl.informers.store_syncer import StoreSyncer
from dlctl.kube.client import MAX_PAGE_BYTES
from tests.informers.scripted import (
    Handler,
    ScriptedServer,
    error_response,
    failure,
    listed,
    modified,
    pod,
    watched,
)
from tests.informers.watching import until, watching

LABELS = {"name": "pods", "group": "", "version": "v1", "resource": "pods"}
EXPIRED = failure(410, "Expired", "too old resource version")


async def test_list_is_paged_and_only_the_first_request_has_a_version(
    server: ScriptedServer,
) -> None:
    server.lists += [
        listed(pod("a"), continue_="one", version=10),
        listed(pod("b"), continue_="two", version=10),
        listed(pod("c"), version=10),
    ]
    async with watching(server, namespace="ns", label_selector="x=y") as watch:
        assert watch.names == ["a", "b", "c"]
        assert watch.version == "10"
    scope = {"labelSelector": "x=y", "limit": "500"}
    assert server.asked("list") == [
        {**scope, "resourceVersion": "0"},
        {**scope, "continue": "one"},
        {**scope, "continue": "two"},
    ]


async def test_relist_asks_for_the_last_version_without_a_limit(server: ScriptedServer) -> None:
    server.lists += [listed(pod("a"), version=10), listed(pod("b"), version=20)]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
    assert server.asked("list") == [
        {"limit": "500", "resourceVersion": "0"},
        {"resourceVersion": "10"},
    ]


async def test_relist_is_paged_if_the_server_paged_a_cached_list(
    server: ScriptedServer,
) -> None:
    server.lists += [
        listed(pod("a"), version=10, continue_="more"),
        listed(pod("b"), version=10),
        listed(pod("b"), version=20),
    ]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
    assert server.asked("list")[2] == {"limit": "500", "resourceVersion": "10"}


async def test_relist_at_an_expired_version_falls_back_to_the_newest_at_once(
    server: ScriptedServer,
) -> None:
    server.lists += [
        listed(pod("a"), version=10),
        error_response(410, "Expired"),
        listed(pod("b"), version=20),
    ]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        # One pause for the expired watch, none for the expired list.
        assert len(watch.backoff.pauses) == 1
    assert server.asked("list")[1:] == [{"resourceVersion": "10"}, {"limit": "500"}]


async def test_expired_continue_token_falls_back_to_a_full_list(server: ScriptedServer) -> None:
    server.lists += [
        listed(pod("a"), version=10, continue_="more"),
        error_response(410, "Expired"),
        listed(pod("a"), pod("b"), version=12),
    ]
    async with watching(server) as watch:
        assert watch.names == ["a", "b"]
        assert watch.version == "12"
    assert server.asked("list")[2] == {"resourceVersion": "0"}


async def test_full_list_of_large_objects_whose_pages_expire_is_an_expired_list(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    large = pod("a", labels={"large": "x" * MAX_PAGE_BYTES})
    expired_pages = [listed(pod("a"), continue_="more"), error_response(410, "Expired")]
    server.lists += [
        *expired_pages,
        listed(large, pod("b")),
        *expired_pages,
        listed(pod("a"), pod("b"), version=12),
    ]
    async with watching(server) as watch:
        assert watch.names == ["a", "b"]
        assert not watch.backoff.pauses
    assert server.asked("list")[2:4] == [{"resourceVersion": "0"}, {"limit": "500"}]
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(
            error_response(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}]),
            id="by reason",
        ),
        pytest.param(
            error_response(504, "Timeout", causes=[{"message": "Too large resource version"}]),
            id="by the message of a cause",
        ),
        pytest.param(
            error_response(504, "Timeout", "Too large resource version: 10, current: 5"),
            id="by message",
        ),
    ],
)
async def test_relist_at_a_too_large_version_falls_back_to_the_newest_at_once(
    server: ScriptedServer, handler: Handler
) -> None:
    server.lists += [listed(pod("a"), version=10), handler, listed(pod("b"), version=5)]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "5")
        assert watch.names == ["b"]
    assert server.asked("list")[2] == {"limit": "500"}


async def test_failed_list_is_retried_after_a_pause(server: ScriptedServer) -> None:
    server.lists += [
        error_response(500, "InternalError"),
        error_response(403, "Forbidden"),
        listed(pod("a"), version=10),
    ]
    async with watching(server) as watch:
        assert watch.names == ["a"]
        assert len(watch.backoff.pauses) == 2


async def test_table_is_rejected_as_a_list(server: ScriptedServer) -> None:
    server.lists += [listed(version=9, kind="Table"), listed(pod("a"), version=10)]
    async with watching(server) as watch:
        assert watch.names == ["a"]


async def test_empty_list_counts_as_synced(server: ScriptedServer) -> None:
    server.lists += [listed(version=10)]
    async with watching(server) as watch:
        assert watch.informer.has_synced()
        assert watch.version == "10"
        assert watch.changes == []


async def test_malformed_object_of_a_list_is_counted_and_the_others_are_kept(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    broken = pod("b", 3, labels={"x": 1})
    server.lists += [listed(pod("a"), broken, pod("c"), version=10)]
    async with watching(server) as watch:
        assert watch.names == ["a", "c"]
        assert watch.sample("informer_malformed_objects_total", **LABELS) == 1
    [record] = [each for each in caplog.records if "does not fit" in each.message]
    assert vars(record)["key"] == "ns/b"


async def test_malformed_object_of_a_relist_keeps_its_last_state(
    server: ScriptedServer,
) -> None:
    broken = pod("a", 12, labels={"x": 1})
    server.lists += [listed(pod("a", 3), version=10), listed(broken, pod("b"), version=20)]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert watch.names == ["a", "b"]
        assert watch.versions == [("a", None, "3"), ("b", None, "1")]


async def test_malformed_object_is_reported_once_until_it_is_well_formed(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    again, fine = pod("a", 11, finalizers=1), pod("a", 12)
    broken = pod("a", 13, finalizers=1)
    server.lists += [listed(pod("a", 3, labels={"x": 1}), version=10)]
    server.watches += [watched(*map(modified, (again, fine, broken)), then="hold")]
    async with watching(server) as watch:
        seen: list[Any] = []
        await until(lambda: watch.version == "13")
        watch.informer.add_malformed_handler(seen.append)
        assert watch.sample("informer_malformed_objects_total", **LABELS) == 3
    assert [obj.key for obj in seen] == [ObjectKey("ns", "a")]
    assert "finalizers" in seen[0].error
    assert len([each for each in caplog.records if "does not fit" in each.message]) == 2


async def test_unforeseen_error_ends_the_watch_but_not_the_reflector(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server.lists += [listed(pod("a"), version=10), listed(pod("b"), version=20)]
    server.watches += [watched(modified(pod("a", 11)), then="hold")]
    faults = [RuntimeError("a bug")]
    apply = StoreSyncer.apply

    def failing(*args: Any) -> None:
        if faults:
            raise faults.pop()
        apply(*args)

    monkeypatch.setattr(StoreSyncer, "apply", failing)
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert watch.names == ["b"]
    assert "a bug" in caplog.text
