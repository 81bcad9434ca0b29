"""Lists: order, pages, versions, selectors, formats."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map, pod
from tests.local.apiserver.raw_client import Answer

# The real cluster puts its certificate into each namespace.
OURS = "ours=yes"


async def make(api: Api, *names: str) -> None:
    for name in names:
        labels = {"ours": "yes", "x": name}
        await api.create(api.path("configmaps"), config_map(name, labels=labels))


async def listed(api: Api, **params: object) -> Answer:
    return await api.get(api.path("configmaps"), **{"labelSelector": OURS} | params)


async def test_list_is_sorted_and_has_a_version(api: Api) -> None:
    await make(api, "b", "a")
    answer = await listed(api)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert answer.names == ["a", "b"]
    assert int(answer.version) >= int(answer.body["items"][0]["metadata"]["resourceVersion"])


async def test_items_of_built_ins_have_no_kind_and_of_custom_ones_do(gadget_api: Api) -> None:
    api = gadget_api
    await make(api, "a")
    await api.create(api.path("gadgets", group=V1), gadget())
    assert "kind" not in (await listed(api)).body["items"][0]
    assert (await api.get(api.path("gadgets", group=V1))).body["items"][0]["kind"] == "Gadget"


async def test_list_of_an_absent_namespace_is_empty(api: Api) -> None:
    answer = await api.get("/api/v1/namespaces/nope/configmaps")
    assert (answer.code, answer.names) == (200, [])


async def test_list_over_all_namespaces_holds_this_one(api: Api) -> None:
    await make(api, "a")
    answer = await api.get("/api/v1/configmaps", fieldSelector="metadata.name=a")
    assert api.namespace in [item["metadata"]["namespace"] for item in answer.body["items"]]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("x=a", ["a"], id="equal"),
        pytest.param("x==a", ["a"], id="double equal"),
        pytest.param("ours,x!=a", ["b", "1"], id="unequal"),
        pytest.param("x in (a, b)", ["a", "b"], id="in"),
        pytest.param("ours,x notin (a,b)", ["1"], id="not in"),
        pytest.param("x", ["a", "b", "1"], id="exists"),
        pytest.param("ours,!x", [], id="absent"),
        pytest.param("x>0", ["1"], id="greater"),
        pytest.param("x<2", ["1"], id="less"),
        pytest.param("x=a,x=b", [], id="both"),
        pytest.param("x in ()", [], id="in nothing"),
        pytest.param("ours,x!=", ["a", "b", "1"], id="not empty"),
    ],
)
async def test_label_selector_chooses(api: Api, selector: str, names: list[str]) -> None:
    await make(api, "a", "b", "1")
    assert sorted((await listed(api, labelSelector=selector)).names) == sorted(names)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("metadata.name=a", ["a"], id="name"),
        pytest.param("metadata.name!=a", ["b"], id="not name"),
        pytest.param("spec.nodeName=n", ["b"], id="node"),
        pytest.param("spec.nodeName=", ["a"], id="no node"),
        pytest.param("status.phase=Pending", ["a", "b"], id="phase"),
        pytest.param("spec.restartPolicy=Never", [], id="restart policy"),
        pytest.param("spec.schedulerName=nobody,metadata.name=a", ["a"], id="two"),
        pytest.param("metadata.namespace=nope", [], id="namespace"),
        pytest.param("=", ["a", "b"], id="of nothing"),
    ],
)
async def test_field_selector_chooses(api: Api, selector: str, names: list[str]) -> None:
    await api.create(api.path("pods"), pod("a"))
    await api.create(api.path("pods"), pod("b", node="n"))
    assert (await api.get(api.path("pods"), fieldSelector=selector)).names == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("spec.color=blue", ["b"], id="equal"),
        pytest.param("spec.color!=blue", ["a"], id="default is unequal"),
        pytest.param("metadata.name=a", ["a"], id="name"),
    ],
)
async def test_selectable_field_of_a_crd_filters(
    gadget_api: Api, selector: str, names: list[str]
) -> None:
    path = gadget_api.path("gadgets", group=V1)
    await gadget_api.create(path, gadget("a"))
    await gadget_api.create(path, gadget("b", color="blue"))
    assert (await gadget_api.get(path, fieldSelector=selector)).names == names


async def test_pages_are_a_consistent_snapshot(api: Api) -> None:
    await make(api, "a", "b", "c", "d")
    first = await listed(api, limit=2)
    await api.delete(api.path("configmaps", "c"))
    await make(api, "e")
    second = await listed(api, **{"continue": first.body["metadata"]["continue"]})
    assert (first.names, second.names) == (["a", "b"], ["c", "d"])
    assert second.version == first.version
    assert not second.body["metadata"].get("continue")


async def test_remaining_items_are_counted_unless_there_is_a_selector(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", group=V1)
    for name in "abc":
        await gadget_api.create(path, gadget(name, meta={"labels": {"x": "y"}}))
    assert (await gadget_api.get(path, limit=1)).body["metadata"]["remainingItemCount"] == 2
    chosen = await gadget_api.get(path, limit=1, labelSelector="x=y")
    assert "remainingItemCount" not in chosen.body["metadata"]
    assert chosen.body["metadata"]["continue"]


async def test_continue_token_excludes_a_version(api: Api) -> None:
    await make(api, "a", "b")
    token = (await listed(api, limit=1)).body["metadata"]["continue"]
    answer = await listed(api, resourceVersion="1", **{"continue": token})
    assert api.failure_text(answer) == (
        "400 BadRequest: specifying resource version is not allowed when using continue"
    )


@pytest.mark.parametrize(
    ("match", "names"),
    [
        pytest.param({"resourceVersionMatch": "Exact"}, ["a"], id="exact"),
        pytest.param({"resourceVersionMatch": "NotOlderThan"}, ["a", "b"], id="not older"),
        pytest.param({}, ["a", "b"], id="by default not older"),
        pytest.param({"limit": 5}, ["a"], id="by default exact with a limit"),
    ],
)
async def test_list_is_as_old_as_its_resource_version_match_allows(
    api: Api, match: JSON, names: list[str]
) -> None:
    await make(api, "a")
    then = (await listed(api)).version
    await make(api, "b")
    # A cache that has not seen the last write yet is not older, either.
    while (found := (await listed(api, resourceVersion=then, **match)).names) != names:
        assert found == ["a"]
        assert "b" in names


async def test_version_from_the_future_times_out(api: Api) -> None:
    await make(api, "a")
    for path in (api.path("configmaps"), api.path("configmaps", "a")):
        answer = await api.get(path, resourceVersion=999999999)
        assert answer.headers["Retry-After"] == "1"
        assert api.failure_text(answer) == (
            "504 Timeout: [ResourceVersionTooLarge] "
            "Timeout: Too large resource version: 999999999, current: VERSION"
        )


async def test_metadata_alone_is_sent_on_request(api: Api) -> None:
    await make(api, "a")
    form = "application/json;as={};v=v1;g=meta.k8s.io"
    one = await api.get(api.path("configmaps", "a"), accept=form.format("PartialObjectMetadata"))
    many = await listed(api, accept=form.format("PartialObjectMetadataList"))
    assert (one.body["kind"], one.body["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert set(one.body) == {"kind", "apiVersion", "metadata"}
    assert many.body["kind"] == "PartialObjectMetadataList"
    assert set(many.body["items"][0]) >= {"metadata"}
    assert "data" not in many.body["items"][0]
