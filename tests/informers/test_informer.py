"""Which handlers are notified of which changes, and when."""

import asyncio

import pytest

from dlctl.api.meta import PODS, Object
from dlctl.api.objects.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
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

EXPIRED = failure(410, "Expired")


async def test_relist_notifies_deletions_first_then_changes_and_skips_unchanged_objects(
    server: ScriptedServer,
) -> None:
    before = [pod("gone", 1), pod("same", 2), pod("changed", 3)]
    after = [pod("new", 14), pod("changed", 13), pod("same", 2)]
    server.lists += [listed(*before, version=10), listed(*after, version=20)]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        assert watch.versions[3:] == [
            ("gone", "1", None),
            ("new", None, "14"),
            ("changed", "3", "13"),
        ]
        assert [change.initial for change in watch.changes] == [True] * 3 + [False] * 3


async def test_object_replaced_during_a_gap_is_one_change_between_two_uids(
    server: ScriptedServer,
) -> None:
    server.lists += [
        listed(pod("a", 3, uid="first"), version=10),
        listed(pod("a", 12, uid="second"), version=20),
    ]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        await until(lambda: watch.version == "20")
        [_, change] = watch.changes
        assert change.old
        assert change.new
        assert (change.old.metadata.uid, change.new.metadata.uid) == ("first", "second")


async def test_store_has_the_change_when_its_handler_is_called(server: ScriptedServer) -> None:
    server.lists += [listed(pod("a", 3), version=10)]
    server.watches += [watched(modified(pod("a", 11)), deleted(pod("a", 12)), then="hold")]
    found: list[tuple[Pod | None, str]] = []
    async with watching(server) as watch:
        store = watch.informer.store
        watch.informer.add_handler(
            lambda change: found.append((store.get(change.key), store.resource_version))
        )
        await until(lambda: watch.version == "12")
    assert [(obj and obj.metadata.resource_version, at) for obj, at in found] == [
        ("3", "10"),
        ("11", "11"),
        (None, "12"),
    ]


async def test_late_handler_gets_the_store_as_initial_objects(server: ScriptedServer) -> None:
    server.lists += [listed(pod("a"), pod("b"), version=10)]
    async with watching(server) as watch:
        late: list[Change[Pod]] = []
        watch.informer.add_handler(late.append)
        assert [(change.key.name, change.initial) for change in late] == [("a", True), ("b", True)]


async def test_informer_has_not_synced_until_a_late_handler_has_seen_a_long_list(
    server: ScriptedServer,
) -> None:
    server.lists += [listed(*(pod(f"p{n}") for n in range(2000)), version=10)]
    async with watching(server) as watch:
        late: list[Change[Pod]] = []
        watch.informer.add_handler(late.append)
        assert not watch.informer.has_synced()
        await watch.informer.wait_synced()
        assert len(late) == 2000


async def test_handler_added_during_a_long_list_gets_each_object_once(
    server: ScriptedServer,
) -> None:
    server.lists += [listed(*(pod(f"p{n}") for n in range(2000)), version=10)]
    async with watching(server, synced=False) as watch:
        await until(lambda: watch.changes)
        late: list[Change[Pod]] = []
        watch.informer.add_handler(late.append)
        assert not watch.informer.has_synced()
        await watch.informer.wait_synced()
        assert len({change.key for change in late}) == len(late) == len(watch.changes) == 2000


async def test_informer_has_synced_only_after_handlers_have_seen_the_list(
    server: ScriptedServer,
) -> None:
    server.lists += [listed(pod("a"), version=10)]
    async with watching(server, synced=False) as watch:
        synced: list[bool] = []
        watch.informer.add_handler(lambda _: synced.append(watch.informer.has_synced()))
        await watch.informer.wait_synced()
        assert synced == [False]


async def test_failing_handler_is_counted_and_logged_once_and_stops_no_other(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Change[Pod]) -> None:
        raise ValueError("no")

    server.lists += [listed(pod("a"), version=10)]
    server.watches += [watched(added(pod("b", 11)), then="hold")]
    async with watching(server, synced=False) as watch:
        watch.informer.add_handler(fail)
        last: list[Change[Pod]] = []
        watch.informer.add_handler(last.append)
        await until(lambda: len(last) == 2)
        labels = {"name": "pods", "group": "", "version": "v1", "resource": "pods"}
        assert watch.sample("informer_handler_errors_total", **labels) == 2
    assert [record.message for record in caplog.records].count("a handler failed on a change") == 2


async def test_handler_added_twice_is_called_twice(server: ScriptedServer) -> None:
    server.lists += [listed(pod("a"), version=10)]
    async with watching(server) as watch:
        watch.informer.add_handler(watch.changes.append)
        watch.informer.add_handler(watch.changes.append)
        assert len(watch.changes) == 3


async def test_stopped_informer_takes_no_handler_and_does_not_run_again(
    server: ScriptedServer,
) -> None:
    server.lists += [listed(version=10)]
    async with watching(server) as watch:
        pass
    with pytest.raises(RuntimeError, match="has stopped"):
        watch.informer.add_handler(watch.changes.append)
    with pytest.raises(RuntimeError, match="already started"):
        await watch.informer.run()


async def test_store_and_handlers_see_only_the_projection(server: ScriptedServer) -> None:
    server.lists += [listed({**pod("a"), "spec": {"nodeName": "n1", "containers": []}})]
    async with watching(server) as watch:
        [obj] = watch.informer.store
        assert watch.changes[0].new is obj
        assert obj.spec
        assert obj.spec.node_name == "n1"
        assert not hasattr(obj.spec, "containers")


async def test_store_is_never_seen_half_replaced(server: ScriptedServer) -> None:
    before = [pod(f"p{n}", 1) for n in range(1500)]
    after = [pod(f"p{n}", 2) for n in range(1500)]
    server.lists += [listed(*before, version=10), listed(*after, version=20)]
    server.watches += [watched(EXPIRED)]
    async with watching(server) as watch:
        store = watch.informer.store

        def states() -> set[tuple[str, str]]:
            return {(store.resource_version, obj.metadata.resource_version) for obj in store}

        seen = states()
        while store.resource_version != "20":
            await asyncio.sleep(0)
            seen |= states()
    assert seen == {("10", "1"), ("20", "2")}


async def test_informer_waits_for_a_server_that_is_not_up_yet(server: ScriptedServer) -> None:
    async with Client(server.config) as client:
        informer = Informer(client, PODS, Object)
        assert not informer.has_synced()
        assert len(informer.store) == 0


async def test_informer_of_an_unserved_resource_syncs_once_it_is_served(
    server: ScriptedServer,
) -> None:
    server.streams += [error_response(404, "NotFound") for _ in range(3)]
    server.streams += [watched(added(pod("a")), bookmark(7, INITIAL_END), then="hold")]
    async with watching(server, synced=False) as watch:
        assert not watch.informer.is_synced_or_unserved()
        await until(watch.informer.is_synced_or_unserved)
        assert not watch.informer.has_synced()
        await until(watch.informer.has_synced)
        assert watch.names == ["a"]
        assert len(watch.backoff.pauses) == 3


async def test_stored_objects_share_their_equal_parts(server: ScriptedServer) -> None:
    owned = {"ownerReferences": [{"uid": "u1", "controller": True}]}
    server.lists += [listed(pod("a", 3, **owned), version=10)]
    server.watches += [watched(added(pod("b", 11, **owned)), then="hold")]
    async with watching(server) as watch:
        await until(lambda: watch.version == "11")
        one, two = watch.informer.store
        assert one.metadata.owner_references is two.metadata.owner_references is not None
