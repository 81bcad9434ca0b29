from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.local.apiserver.patches.json_patch import json_patched
from dlctl.local.apiserver.patches.merge_patch import merged
from dlctl.local.apiserver.patches.strategic_merge import apply_strategic_merge_patch
from dlctl.local.apiserver.status import StatusError
from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    WIDGETS,
    RawClient,
    config_map,
    pod,
    widget,
)

KEYS = {
    "spec.containers": "name",
    "spec.containers.env": "name",
    "spec.containers.ports": "containerPort",
    "status.conditions": "type",
}


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="adds"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null deletes"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="deep"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": "x"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="over a scalar"),
        pytest.param({"a": 1}, {}, {"a": 1}, id="empty"),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merged(target, patch) == result


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        pytest.param([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}, id="add"),
        pytest.param([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}, id="insert"),
        pytest.param([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}, id="append"),
        pytest.param([{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove"),
        pytest.param([{"op": "replace", "path": "/a", "value": 1}], {"a": 1}, id="replace"),
        pytest.param([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}, id="move"),
        pytest.param([{"op": "copy", "from": "/a/0", "path": "/a/-"}], {"a": [1, 2, 1]}, id="copy"),
        pytest.param([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}, id="test"),
        pytest.param(
            [{"op": "add", "path": "/x~1y~0z", "value": 1}], {"a": [1, 2], "x/y~z": 1}, id="escapes"
        ),
    ],
)
def test_json_patch(operations: Any, result: Any) -> None:
    target = {"a": [1, 2]}
    assert json_patched(target, operations) == result
    assert target == {"a": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/a", "value": 2}, id="test that fails"),
        pytest.param({"op": "remove", "path": "/x"}, id="remove of nothing"),
        pytest.param({"op": "replace", "path": "/x/y", "value": 1}, id="replace in nothing"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, id="add below nothing"),
        pytest.param({"op": "add", "path": "/l/5", "value": 1}, id="index out of range"),
        pytest.param({"op": "move", "from": "/x", "path": "/y"}, id="move of nothing"),
    ],
)
def test_inapplicable_json_patch_is_unprocessable(operation: Any) -> None:
    with pytest.raises(StatusError) as caught:
        json_patched({"a": 1, "l": []}, [operation])
    assert caught.value.code == 422


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(documents, documents)
def test_merge_patch_applied_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merged(target, patch)
    assert merged(once, patch) == once


def strategic(target: Any, patch: Any) -> Any:
    return apply_strategic_merge_patch(target, patch, KEYS)


def containers(*items: Any) -> Any:
    return {"spec": {"containers": list(items)}}


def test_strategic_merge_finds_list_items_by_key() -> None:
    target = containers({"name": "a", "image": "1"}, {"name": "b", "image": "1"})
    patched = strategic(target, containers({"name": "b", "image": "2"}))
    assert patched == containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"})


def test_strategic_merge_reaches_lists_in_list_items() -> None:
    target = containers({"name": "a", "env": [{"name": "X", "value": "1"}]})
    patched = strategic(target, containers({"name": "a", "env": [{"name": "Y", "value": "2"}]}))
    env = patched["spec"]["containers"][0]["env"]
    assert env == [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]


def test_strategic_delete_directive_removes_a_list_item() -> None:
    target = containers({"name": "a"}, {"name": "b"})
    patched = strategic(target, containers({"name": "a", "$patch": "delete"}))
    assert patched == containers({"name": "b"})


def test_strategic_replace_directive_replaces_a_list_or_an_object() -> None:
    target = containers({"name": "a"}, {"name": "b"}) | {"labels": {"x": "1"}}
    patch = containers({"name": "c"}, {"$patch": "replace"})
    patch["labels"] = {"$patch": "replace", "y": "2"}
    patched = strategic(target, patch)
    assert patched == containers({"name": "c"}) | {"labels": {"y": "2"}}


def test_strategic_retain_keys_drops_the_others() -> None:
    target = {"spec": {"strategy": {"type": "Rolling", "rolling": {"n": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic(target, patch) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_strategic_primitive_lists_lose_and_gain_items() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["b", "c"]}}
    assert strategic(target, patch) == {"metadata": {"finalizers": ["c", "b"]}}


def test_strategic_element_order_sorts_the_named_items() -> None:
    target = containers({"name": "a"}, {"name": "b"})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c"}],
        }
    }
    names = [each["name"] for each in strategic(target, patch)["spec"]["containers"]]
    assert names == ["c", "b", "a"]


def test_strategic_list_without_a_key_is_replaced() -> None:
    assert strategic({"args": ["a", "b"]}, {"args": ["c"]}) == {"args": ["c"]}


async def test_merge_patch_over_http(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    answer = await api.patch(f"{CONFIG_MAPS}/a", {"data": {"k": None, "l": "1"}})
    assert (answer.code, answer.body["data"]) == (200, {"l": "1"})


async def test_json_patch_over_http(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    operations = [{"op": "replace", "path": "/data/k", "value": "2"}]
    answer = await api.patch(f"{CONFIG_MAPS}/a", operations, JSON_PATCH)
    assert (answer.code, answer.body["data"]) == (200, {"k": "2"})


async def test_json_patch_whose_test_fails_changes_nothing(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    operations = [
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "test", "path": "/data/k", "value": "1"},
    ]
    answer = await api.patch(f"{CONFIG_MAPS}/a", operations, JSON_PATCH)
    assert answer.code == 422
    assert answer.body["message"] == (
        "the server rejected our request due to an error in our request"
    )
    assert (await api.get(f"{CONFIG_MAPS}/a")).body["data"] == {"k": "v"}


async def test_strategic_patch_over_http_keeps_the_other_conditions(api: RawClient) -> None:
    await api.create(PODS, pod("a"))
    for type_ in ("Ready", "PodScheduled", "Ready"):
        condition = {"type": type_, "status": "True"}
        body = {"status": {"conditions": [condition]}}
        assert (await api.patch(f"{PODS}/a/status", body, STRATEGIC)).code == 200
    status = (await api.get(f"{PODS}/a")).body["status"]
    types = [each["type"] for each in status["conditions"]]
    assert sorted(types) == ["PodScheduled", "Ready"]


@pytest.mark.parametrize("type_", [STRATEGIC, "text/plain"])
async def test_custom_objects_reject_other_kinds_of_patches(widgets: RawClient, type_: str) -> None:
    await widgets.create(WIDGETS, widget("a"))
    answer = await widgets.patch(f"{WIDGETS}/a", b"{}", type_)
    assert answer.code == 415
    assert answer.body["reason"] == "UnsupportedMediaType"
    assert MERGE in answer.body["message"]


async def test_patch_with_an_old_version_is_a_conflict(api: RawClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map("a"))
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}})
    version = created["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"k": "3"}}
    answer = await api.patch(f"{CONFIG_MAPS}/a", body)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


async def test_patch_of_absent_object_is_not_found(api: RawClient) -> None:
    assert (await api.patch(f"{CONFIG_MAPS}/a", {})).code == 404


async def test_patch_that_is_not_json_is_a_bad_request(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    assert (await api.patch(f"{CONFIG_MAPS}/a", b"{")).code == 400


@pytest.mark.timeout(60)
def test_large_lists_merge_without_a_search_for_each_item() -> None:
    names = [f"example.com/{i}" for i in range(100_000)]
    owners = [{"uid": name} for name in names]
    target = {"metadata": {"finalizers": names, "ownerReferences": owners}}
    keep, gone = names[::2], names[1::2]
    patch = {
        "$deleteFromPrimitiveList/finalizers": gone,
        "$setElementOrder/finalizers": keep[::-1],
        "finalizers": keep,
        "ownerReferences": [
            *({"uid": name, "$patch": "delete"} for name in gone),
            *({"uid": name, "kind": "A"} for name in keep),
        ],
    }

    result = apply_strategic_merge_patch(target, {"metadata": patch}, {})["metadata"]

    assert result["finalizers"] == keep[::-1]
    assert result["ownerReferences"] == [{"uid": name, "kind": "A"} for name in keep]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "/a/0", "value": 1}],
        [{"op": "remove", "path": "/a/0"}, {"op": "add", "path": "/a/-", "value": 1}],
        [{"op": "move", "from": "/a/0", "path": "/a/-"}],
    ],
)
def test_json_patch_that_shifts_long_lists_again_and_again_is_refused(operations: Any) -> None:
    target = {"a": [0] * 200_000}
    json_patched(target, operations * 400)
    with pytest.raises(StatusError) as refused:
        json_patched(target, operations * 501)
    assert refused.value.code == 413


def test_json_patch_of_the_most_operations_fits_a_list_of_as_many_items() -> None:
    target: Any = {"a": list(range(10_000))}
    assert json_patched(target, [{"op": "remove", "path": "/a/0"}] * 10_000) == {"a": []}


async def test_large_yaml_and_yaml_that_aliases_make_large_are_refused(api: RawClient) -> None:
    large = b"metadata: {name: a}\ndata: {" + b"a: b," * 30_000 + b"}"
    layers = "".join(f"  a{i + 1}: &a{i + 1} [{f'*a{i},' * 9}]\n" for i in range(8))
    bomb = f"metadata: {{name: a}}\ndata: {{}}\nx:\n  a0: &a0 [x]\n{layers}".encode()
    name, apply = f"{CONFIG_MAPS}/a", "application/apply-patch+yaml"

    assert (await api.call("POST", CONFIG_MAPS, large, type_="application/yaml")).code == 413
    assert (await api.call("PATCH", name, large, type_=apply, fieldManager="a")).code == 413
    answer = await api.call("POST", CONFIG_MAPS, bomb, type_="application/yaml")
    assert (answer.code, "excessive aliasing" in answer.body["message"]) == (400, True)
    answer = await api.call("PATCH", name, bomb, type_=apply, fieldManager="a")
    assert answer.code == 400
