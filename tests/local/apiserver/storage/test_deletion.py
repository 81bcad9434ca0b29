from typing import Any

import pytest

from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    RawClient,
    config_map,
    pod,
    widget,
)


async def test_deletion_without_grace_period_returns_success(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.delete(f"{CONFIG_MAPS}/a")
    assert answer.code == 200
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]},
    }
    assert (await api.get(f"{CONFIG_MAPS}/a")).code == 404


async def test_scheduled_pod_becomes_terminating(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    answer = await api.delete(f"{PODS}/a")
    assert answer.body["metadata"]["deletionTimestamp"]
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert answer.body["metadata"]["generation"] == 2
    assert (await api.get(f"{PODS}/a")).code == 200


async def test_grace_period_zero_removes_a_scheduled_pod(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    await api.delete(f"{PODS}/a")
    answer = await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert answer.body["kind"] == "Pod"
    assert (await api.get(f"{PODS}/a")).code == 404


async def test_grace_period_is_read_from_the_query_too(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    await api.delete(f"{PODS}/a", gracePeriodSeconds=0)
    assert (await api.get(f"{PODS}/a")).code == 404


async def test_grace_period_can_only_be_shortened(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    first = await api.delete(f"{PODS}/a", gracePeriodSeconds=20)
    longer = await api.delete(f"{PODS}/a", gracePeriodSeconds=25)
    assert longer.version == first.version
    shorter = await api.delete(f"{PODS}/a", gracePeriodSeconds=5)
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_unscheduled_pod_is_removed_at_once(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    await api.delete(f"{PODS}/a")
    assert (await api.get(f"{PODS}/a")).code == 404


async def test_finished_pod_is_removed_at_once(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    await api.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{PODS}/a")
    assert (await api.get(f"{PODS}/a")).code == 404


async def test_watch_sees_a_removed_pod_marked_first(api: RawClient) -> None:
    created = await api.create(PODS, pod("a"))
    await api.delete(f"{PODS}/a")
    version = created["metadata"]["resourceVersion"]
    async with api.watch(PODS, resourceVersion=version) as events:
        type_, marked = await events.next()
        assert type_ == "MODIFIED"
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
        type_, last = await events.next()
        assert type_ == "DELETED"
        versions = [int(obj["metadata"]["resourceVersion"]) for obj in (created, marked, last)]
        assert versions == sorted(set(versions))


async def test_finalizer_keeps_a_deleted_object(widgets: RawClient) -> None:
    await widgets.create(WIDGETS, widget("a", metadata={"finalizers": ["example.com/x"]}))
    answer = await widgets.delete(f"{WIDGETS}/a")
    assert answer.body["metadata"]["deletionTimestamp"]
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert answer.body["metadata"]["generation"] == 2

    finished = await widgets.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    assert finished.code == 200
    assert (await widgets.get(f"{WIDGETS}/a")).code == 404


async def test_finalizers_cannot_be_added_to_a_deleted_object(widgets: RawClient) -> None:
    await widgets.create(WIDGETS, widget("a", metadata={"finalizers": ["example.com/x"]}))
    await widgets.delete(f"{WIDGETS}/a")
    body = {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}
    answer = await widgets.patch(f"{WIDGETS}/a", body)
    assert answer.code == 422
    assert answer.body["details"]["causes"][0] == {
        "field": "metadata.finalizers",
        "message": (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"example.com/y"}'
        ),
        "reason": "FieldValueForbidden",
    }


@pytest.mark.parametrize(
    ("preconditions", "message"),
    [
        pytest.param({"uid": "other"}, "the UID in the precondition (other)", id="uid"),
        pytest.param(
            {"resourceVersion": "1"}, "the ResourceVersion in the precondition (1)", id="version"
        ),
    ],
)
async def test_failing_precondition_is_a_conflict(
    api: RawClient, preconditions: dict[str, Any], message: str
) -> None:
    await api.create(PODS, pod("a"))
    answer = await api.delete(f"{PODS}/a", {"preconditions": preconditions})
    assert answer.code == 409
    assert answer.body["reason"] == "Conflict"
    assert answer.body["message"].startswith('Operation cannot be fulfilled on Pod "a": ')
    assert message in answer.body["message"]
    assert (await api.get(f"{PODS}/a")).code == 200


async def test_matching_precondition_allows_deletion(api: RawClient) -> None:
    created = await api.create(PODS, pod("a"))
    uid = created["metadata"]["uid"]
    assert (await api.delete(f"{PODS}/a", {"preconditions": {"uid": uid}})).code == 200


async def test_dry_run_deletes_nothing(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    assert (await api.delete(f"{PODS}/a", dryRun="All")).code == 200
    assert (await api.get(f"{PODS}/a")).code == 200


async def test_unknown_propagation_is_invalid(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    answer = await api.delete(f"{PODS}/a", {"propagationPolicy": "Sideways"})
    assert answer.code == 422
    assert "DeleteOptions" in answer.body["message"]


async def test_collection_is_deleted_by_selector(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a", labels={"app": "x"}))
    await api.create(CONFIG_MAPS, config_map("b"))
    answer = await api.delete(CONFIG_MAPS, labelSelector="app=x")
    assert answer.body["kind"] == "ConfigMapList"
    assert answer.names == ["a"]
    assert (await api.get(CONFIG_MAPS)).names == ["b"]
