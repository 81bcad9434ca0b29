"""Deeply nested objects: accepted like any other, up to the real server's limit."""

import msgspec
import pytest

from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    WIDGETS,
    Answer,
    RawClient,
    config_map,
    widget,
)
from tests.support.owner_references import owned_by

WIDGET = f"{WIDGETS}/a"


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def deep_widget(levels: int, name: str = "a") -> bytes:
    whole = msgspec.json.encode(widget(name, spec={"x": "HERE"}))
    return whole.replace(b'"HERE"', nested(levels))


async def raw(api: RawClient, method: str, path: str, body: bytes = b"", type_: str = "") -> bytes:
    """Return the raw response: Python's own decoder cannot decode it."""
    headers = {"Content-Type": type_ or "application/json"} if body else {}
    async with api.session.request(method, path, data=body or None, headers=headers) as response:
        answer = await response.read()
        assert response.status in (200, 201), answer[:1000]
        return answer


@pytest.mark.parametrize("levels", [1_500, 9_990])
async def test_deeply_nested_object_is_stored_and_updated(widgets: RawClient, levels: int) -> None:
    held = nested(levels)
    assert held in await raw(widgets, "POST", WIDGETS, deep_widget(levels))
    assert held in await raw(widgets, "GET", WIDGET)
    assert held in await raw(widgets, "GET", WIDGETS)
    labels = b'{"metadata":{"labels":{"k":"v"}}}'
    assert held in await raw(widgets, "PATCH", WIDGET, labels, MERGE)
    added = b'[{"op":"add","path":"/spec/y","value":1}]'
    assert b'"y":1' in await raw(widgets, "PATCH", WIDGET, added, JSON_PATCH)
    status = b'{"status":{"phase":' + held + b"}}"
    assert b'"phase":[' in await raw(widgets, "PATCH", f"{WIDGET}/status", status, MERGE)
    assert held in await raw(widgets, "PUT", WIDGET, await raw(widgets, "GET", WIDGET))
    assert b'"z"' in await raw(widgets, "PATCH", WIDGET, b'{"spec":{"x":"z"}}', MERGE)


async def test_watch_sends_deeply_nested_objects(widgets: RawClient) -> None:
    await raw(widgets, "POST", WIDGETS, deep_widget(1_500))
    async with widgets.session.get(WIDGETS, params={"watch": "true"}) as response:
        assert nested(1_500) in await response.content.readuntil(b"\n")


async def test_deeply_nested_owner_is_deleted_with_its_dependents(widgets: RawClient) -> None:
    await raw(widgets, "POST", WIDGETS, deep_widget(1_500))
    owner = msgspec.json.decode(
        (await raw(widgets, "PATCH", WIDGET, b'{"spec":{"x":0}}', MERGE)), type=dict
    )
    await raw(widgets, "PATCH", WIDGET, b'{"spec":{"x":' + nested(1_500) + b"}}", MERGE)
    child = {"metadata": {"name": "child", "ownerReferences": owned_by(owner)}, "data": {}}
    await widgets.create(CONFIG_MAPS, child)
    await raw(widgets, "DELETE", WIDGET)
    await widgets.collect_garbage(f"{CONFIG_MAPS}/child")


@pytest.mark.parametrize("levels", [10_001, 400_000])
async def test_body_beyond_the_limit_is_a_bad_request(widgets: RawClient, levels: int) -> None:
    def refused(answer: Answer) -> bool:
        return answer.code == 400 and "exceeded max depth" in answer.body["message"]

    assert refused(await widgets.post(WIDGETS, deep_widget(levels)))
    await widgets.create(WIDGETS, widget("a"))
    patch = b'{"spec":{"x":' + nested(levels) + b"}}"
    assert refused(await widgets.patch(WIDGET, patch))
    assert refused(await widgets.put(WIDGET, deep_widget(levels)))


async def test_deeply_nested_delete_options_are_a_bad_request(widgets: RawClient) -> None:
    await widgets.create(WIDGETS, widget("a"))
    answer = await widgets.delete(WIDGET, nested(10_001))
    assert answer.code == 400


DEEP_TEXT = nested(50_000).decode()


async def test_deeply_nested_path_of_a_field_manager_is_ignored(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    (manager,) = created["metadata"]["managedFields"]
    sent = manager | {"fieldsV1": {f"v:{DEEP_TEXT}": {}}}
    answer = await api.put(f"{CONFIG_MAPS}/a", config_map("a", managedFields=[sent]))
    assert (answer.code, answer.body["metadata"]["managedFields"]) == (200, [manager])


async def test_deeply_nested_last_configuration_is_ignored(api: RawClient) -> None:
    key = "kubectl.kubernetes.io/last-applied-configuration"
    last = '{"data":' + DEEP_TEXT + "}"
    await api.create(CONFIG_MAPS, config_map("a", annotations={key: last}))
    config = {"apiVersion": "v1", "kind": "ConfigMap"} | config_map("a") | {"data": {"k": "w"}}
    path, apply = f"{CONFIG_MAPS}/a", "application/apply-patch+yaml"
    answer = await api.call("PATCH", path, config, type_=apply, fieldManager="kubectl")
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
