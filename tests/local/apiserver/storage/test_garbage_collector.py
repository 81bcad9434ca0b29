import asyncio

from dlctl.api import meta
from dlctl.local.apiserver import status
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    CRDS,
    PODS,
    WIDGETS,
    RawClient,
    config_map,
    pod,
    widget,
)
from tests.local.apiserver.storage.garbage import settled
from tests.support.owner_references import owned_by


async def test_background_deletion_deletes_dependents_after_their_owner(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    await widgets.create(PODS, pod("p", ownerReferences=owned_by(owner)))
    await widgets.delete(f"{WIDGETS}/a")
    assert (await widgets.get(f"{WIDGETS}/a")).code == 404
    await widgets.collect_garbage(f"{PODS}/p")


async def test_deletion_that_fails_is_tried_again(widgets: RawClient) -> None:
    storage, pods = widgets.server.storage, table_of(meta.PODS)
    failed, deleted = asyncio.Event(), asyncio.Event()

    def fail_once(change: StorageEvent) -> None:
        if change.table == pods:
            failed.set()
            storage.persist = persist
            raise status.internal_error("journal: No space left on device")

    owner = await widgets.create(WIDGETS, widget("a"))
    await widgets.create(PODS, pod("p", ownerReferences=owned_by(owner)))
    persist, storage.persist = storage.persist, fail_once
    storage.observers.append(lambda change: deleted.set() if change.table == pods else None)
    await widgets.delete(f"{WIDGETS}/a")
    async with asyncio.timeout(30):
        await deleted.wait()
    assert failed.is_set()


async def test_dependents_of_dependents_are_deleted_too(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    middle = await widgets.create(CONFIG_MAPS, config_map("b", ownerReferences=owned_by(owner)))
    await widgets.create(CONFIG_MAPS, config_map("c", ownerReferences=owned_by(middle)))
    await widgets.delete(f"{WIDGETS}/a")
    await widgets.collect_garbage(f"{CONFIG_MAPS}/c")


async def test_scheduled_dependents_get_their_grace_period(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    await widgets.create(PODS, pod("p", node="n", ownerReferences=owned_by(owner)))
    await widgets.delete(f"{WIDGETS}/a")
    await settled(widgets)
    meta = (await widgets.get(f"{PODS}/p")).body["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 30


async def test_foreground_deletion_waits_for_blocking_dependents(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    await widgets.create(PODS, pod("p", node="n", ownerReferences=owned_by(owner)))
    answer = await widgets.delete(f"{WIDGETS}/a", {"propagationPolicy": "Foreground"})
    assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await settled(widgets)
    assert (await widgets.get(f"{PODS}/p")).body["metadata"]["deletionTimestamp"]
    assert (await widgets.get(f"{WIDGETS}/a")).code == 200

    await widgets.delete(f"{PODS}/p", gracePeriodSeconds=0)
    await widgets.collect_garbage(f"{WIDGETS}/a")


async def test_foreground_deletion_does_not_wait_for_what_has_left_its_owner(
    widgets: RawClient,
) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    meta = {"ownerReferences": owned_by(owner), "finalizers": ["example.com/kept"]}
    await widgets.create(CONFIG_MAPS, config_map("kept", **meta))
    await widgets.delete(f"{WIDGETS}/a", {"propagationPolicy": "Foreground"})
    await settled(widgets)
    assert (await widgets.get(f"{WIDGETS}/a")).code == 200

    await widgets.patch(f"{CONFIG_MAPS}/kept", {"metadata": {"ownerReferences": None}})
    await widgets.collect_garbage(f"{WIDGETS}/a")
    assert (await widgets.get(f"{CONFIG_MAPS}/kept")).code == 200


async def test_late_dependent_goes_like_its_owner_with_its_crd(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    references = owned_by(owner)
    await widgets.create(CONFIG_MAPS, config_map("early", ownerReferences=references))
    await widgets.delete(f"{CRDS}/widgets.example.com")
    await widgets.collect_garbage(f"{CONFIG_MAPS}/early")
    await widgets.create(CONFIG_MAPS, config_map("late", ownerReferences=references))
    await widgets.collect_garbage(f"{CONFIG_MAPS}/late")


async def test_foreground_deletion_does_not_wait_for_other_dependents(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    references = owned_by(owner, block=False)
    await widgets.create(PODS, pod("p", node="n", ownerReferences=references))
    await widgets.delete(f"{WIDGETS}/a", {"propagationPolicy": "Foreground"})
    await widgets.collect_garbage(f"{WIDGETS}/a")
    await settled(widgets)
    assert (await widgets.get(f"{PODS}/p")).body["metadata"]["deletionTimestamp"]


async def test_orphans_are_kept_and_lose_their_owner_reference(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    await widgets.create(PODS, pod("p", ownerReferences=owned_by(owner)))
    await widgets.delete(f"{WIDGETS}/a", propagationPolicy="Orphan")
    await widgets.collect_garbage(f"{WIDGETS}/a")
    await settled(widgets)
    assert "ownerReferences" not in (await widgets.get(f"{PODS}/p")).body["metadata"]


async def test_object_with_another_owner_is_kept_and_loses_one_reference(
    widgets: RawClient,
) -> None:
    lost = await widgets.create(WIDGETS, widget("a"))
    kept = await widgets.create(WIDGETS, widget("b"))
    references = [*owned_by(lost), owned_by(kept)[0] | {"controller": False}]
    await widgets.create(PODS, pod("p", ownerReferences=references))
    await widgets.delete(f"{WIDGETS}/a")
    await settled(widgets)
    left = (await widgets.get(f"{PODS}/p")).body["metadata"]["ownerReferences"]
    assert [each["name"] for each in left] == ["b"]


async def test_object_with_a_nonexistent_owner_is_deleted(widgets: RawClient) -> None:
    owner = await widgets.create(WIDGETS, widget("a"))
    owner["metadata"]["uid"] = "of an earlier one"
    await widgets.create(PODS, pod("p", ownerReferences=owned_by(owner)))
    await widgets.collect_garbage(f"{PODS}/p")


async def test_object_with_an_owner_of_an_unknown_kind_is_kept(api: RawClient) -> None:
    owner = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x", "uid": "1"}}
    await api.create(PODS, pod("p", ownerReferences=owned_by(owner)))
    await settled(api)
    assert (await api.get(f"{PODS}/p")).code == 200
