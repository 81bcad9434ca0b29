"""Results of patches of the three types."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import config_map, pod
from tests.local.apiserver.raw_client import JSON_PATCH, STRATEGIC


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        pytest.param({"data": {"x": "1"}}, {"k": "v", "x": "1"}, id="adds"),
        pytest.param({"data": {"k": None}}, None, id="null deletes"),
        pytest.param({"data": {"zz": None}}, {"k": "v"}, id="null of nothing"),
        pytest.param({"data": None}, None, id="all"),
        pytest.param({}, {"k": "v"}, id="nothing"),
    ],
)
async def test_merge_patch_sets_fields_and_deletes_nulls(
    api: Api, patch: JSON, data: JSON | None
) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), patch)
    assert (answer.code, answer.body.get("data")) == (200, data)


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        pytest.param(
            [{"op": "add", "path": "/data/x", "value": "1"}], {"k": "v", "x": "1"}, id="add"
        ),
        pytest.param([{"op": "add", "path": "/data/x"}], {"k": "v", "x": ""}, id="add no value"),
        pytest.param(
            [{"op": "replace", "path": "/data/k", "value": "w"}], {"k": "w"}, id="replace"
        ),
        pytest.param(
            [{"op": "replace", "path": "/data/x", "value": "w"}],
            {"k": "v", "x": "w"},
            id="replace of nothing adds",
        ),
        pytest.param([{"op": "remove", "path": "/data/k"}], None, id="remove"),
        pytest.param([{"op": "move", "from": "/data/k", "path": "/data/x"}], {"x": "v"}, id="move"),
        pytest.param(
            [{"op": "copy", "from": "/data/k", "path": "/data/x"}], {"k": "v", "x": "v"}, id="copy"
        ),
        pytest.param([{"op": "test", "path": "/data/k", "value": "v"}], {"k": "v"}, id="test"),
        pytest.param([{"op": "test", "path": "/x", "value": None}], {"k": "v"}, id="test absence"),
        pytest.param([], {"k": "v"}, id="nothing"),
        pytest.param(
            [{"op": "copy", "from": "/data/zz", "path": "/data/x"}],
            {"k": "v", "x": ""},
            id="copy of nothing",
        ),
        pytest.param(
            [
                {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c", "a.b/d"]},
                {"op": "add", "path": "/metadata/finalizers/-1", "value": "last"},
                {"op": "copy", "from": "/metadata/finalizers/-1", "path": "/data/last"},
                {"op": "copy", "from": "/metadata/finalizers/+1", "path": "/data/signed"},
                {"op": "remove", "path": "/metadata/finalizers"},
            ],
            {"k": "v", "last": "last", "signed": "a.b/d"},
            id="indexes with a sign",
        ),
        pytest.param(
            [
                {"op": "add", "path": "/data/x.y~1z", "value": "1"},
                {"op": "remove", "path": "/data"},
            ],
            None,
            id="in order",
        ),
    ],
)
async def test_json_patch_applies_its_operations_in_order(
    api: Api, operations: list[JSON], data: JSON | None
) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.patch(api.path("configmaps", "a"), operations, JSON_PATCH)
    assert (answer.code, answer.body.get("data")) == (200, data)


async def test_too_many_operations_are_too_large(api: Api) -> None:
    await api.create(api.path("configmaps"), config_map())
    operations = [{"op": "test", "path": "/data/k", "value": "v"}] * 10_001
    answer = await api.patch(api.path("configmaps", "a"), operations, JSON_PATCH)
    assert api.failure_text(answer) == (
        "413 RequestEntityTooLarge: Request entity too large: The allowed maximum operations in a "
        "JSON patch is 10000, got 10001"
    )


async def test_strategic_patch_merges_containers_by_their_name(api: Api) -> None:
    await api.create(api.path("pods"), pod())
    change = {"spec": {"containers": [{"name": "main", "image": "x2"}]}}
    answer = await api.patch(api.path("pods", "a"), change, STRATEGIC)
    assert [each["image"] for each in answer.body["spec"]["containers"]] == ["x2"]
    assert answer.body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("change", "finalizers"),
    [
        pytest.param({"finalizers": ["a.b/d"]}, ["a.b/d", "a.b/c"], id="added"),
        pytest.param({"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}, None, id="removed"),
        pytest.param({"finalizers": None}, None, id="all removed"),
        pytest.param({"finalizers": ["a.b/c"]}, ["a.b/c"], id="there already"),
    ],
)
async def test_strategic_patch_treats_finalizers_as_a_set(
    api: Api, change: JSON, finalizers: Any
) -> None:
    path = api.path("configmaps", "a")
    await api.create(api.path("configmaps"), config_map(finalizers=["a.b/c"]))
    answer = await api.patch(path, {"metadata": change}, STRATEGIC)
    assert answer.body["metadata"].get("finalizers") == finalizers
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_strategic_patch_of_a_list_without_its_key_is_rejected(api: Api) -> None:
    await api.create(api.path("pods"), pod())
    change = {"spec": {"containers": [{"image": "x"}]}}
    answer = await api.patch(api.path("pods", "a"), change, STRATEGIC)
    message = "map: map[image:x] does not contain declared merge key: name"
    assert api.failure_text(answer) == f"500 : {message}"
