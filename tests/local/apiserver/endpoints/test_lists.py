import base64

import msgspec
import pytest

from dlctl.local.apiserver.server import serve
from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    RawClient,
    config_map,
    pod,
    widget,
)


async def make(api: RawClient, *names: str) -> None:
    for name in names:
        await api.create(CONFIG_MAPS, config_map(name))


async def test_list_is_sorted_and_has_the_current_version(api: RawClient) -> None:
    await make(api, "b", "a")
    answer = await api.get(CONFIG_MAPS)
    assert answer.body["kind"] == "ConfigMapList"
    assert answer.body["apiVersion"] == "v1"
    assert answer.names == ["a", "b"]
    assert answer.version == str(api.server.storage.revision)


async def test_items_of_built_ins_have_no_kind_and_of_custom_ones_do(widgets: RawClient) -> None:
    await make(widgets, "a")
    await widgets.create(WIDGETS, widget("a"))
    assert "kind" not in (await widgets.get(CONFIG_MAPS)).body["items"][0]
    assert (await widgets.get(WIDGETS)).body["items"][0]["kind"] == "Widget"


async def test_list_over_all_namespaces_holds_each(api: RawClient) -> None:
    await make(api, "a")
    await api.create("/api/v1/namespaces/kube-system/configmaps", config_map("b"))
    assert {"a", "b"} <= set((await api.get("/api/v1/configmaps")).names)
    assert "b" not in (await api.get(CONFIG_MAPS)).names


async def test_list_of_an_absent_namespace_is_empty(api: RawClient) -> None:
    answer = await api.get("/api/v1/namespaces/none/pods")
    assert (answer.code, answer.names) == (200, [])


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("app=x", ["a", "b"], id="equal"),
        pytest.param("app==x,tier", ["b"], id="and exists"),
        pytest.param("app!=x", ["c", "d"], id="unequal or absent"),
        pytest.param("app in (x, y)", ["a", "b", "c"], id="in"),
        pytest.param("app notin (x,y)", ["d"], id="not in"),
        pytest.param("!app", ["d"], id="absent"),
        pytest.param("n>1", ["c"], id="greater"),
        pytest.param("n<2", ["d"], id="less"),
    ],
)
async def test_label_selector_chooses(api: RawClient, selector: str, names: list[str]) -> None:
    labels = {
        "a": {"app": "x"},
        "b": {"app": "x", "tier": "1"},
        "c": {"app": "y", "n": "2"},
        "d": {"n": "1"},
    }
    for name, each in labels.items():
        await api.create(PODS, pod(name, labels=each))
    assert (await api.get(PODS, labelSelector=selector)).names == names


@pytest.mark.parametrize("selector", ["a=b=c", "a in", "a,", "in (x)", "n>x", "=x"])
async def test_unparsable_label_selector_is_a_bad_request(api: RawClient, selector: str) -> None:
    answer = await api.get(PODS, labelSelector=selector)
    assert answer.code == 400
    assert "found '" in answer.body["message"] or "Invalid value" in answer.body["message"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("metadata.name=a", ["a"], id="name"),
        pytest.param("metadata.name!=a", ["b"], id="not name"),
        pytest.param("spec.nodeName=n", ["b"], id="node"),
        pytest.param("spec.nodeName=", ["a"], id="no node"),
        pytest.param("status.phase=Pending,metadata.namespace=default", ["a", "b"], id="two"),
    ],
)
async def test_field_selector_chooses(api: RawClient, selector: str, names: list[str]) -> None:
    await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b", node="n"))
    assert (await api.get(PODS, fieldSelector=selector)).names == names


async def test_unselectable_field_is_a_bad_request(api: RawClient) -> None:
    answer = await api.get(PODS, fieldSelector="spec.priority=1")
    assert answer.code == 400
    assert answer.body["message"] == "field label not supported: spec.priority"


async def test_each_page_continues_after_the_last_one(api: RawClient) -> None:
    await make(api, "a", "b", "c")
    first = await api.get(CONFIG_MAPS, limit=2)
    assert first.names == ["a", "b"]
    assert first.body["metadata"]["remainingItemCount"] == 1
    second = await api.get(CONFIG_MAPS, **{"continue": first.body["metadata"]["continue"]})
    assert second.names == ["c"]
    assert "continue" not in second.body["metadata"]


async def test_all_pages_are_one_consistent_snapshot(api: RawClient) -> None:
    await make(api, "a", "b", "c", "d")
    first = await api.get(CONFIG_MAPS, limit=2)
    await api.delete(f"{CONFIG_MAPS}/c")
    await api.patch(f"{CONFIG_MAPS}/d", {"data": {"k": "new"}})
    await make(api, "e")
    second = await api.get(CONFIG_MAPS, **{"continue": first.body["metadata"]["continue"]})
    assert second.names == ["c", "d"]
    assert second.body["items"][1]["data"] == {"k": "v"}
    assert second.version == first.version


async def test_limit_counts_only_what_is_selected(api: RawClient) -> None:
    for name in "abcd":
        await api.create(CONFIG_MAPS, config_map(name, labels={"odd": str(name in "ac").lower()}))
    first = await api.get(CONFIG_MAPS, limit=1, labelSelector="odd=true")
    assert first.names == ["a"]
    assert "remainingItemCount" not in first.body["metadata"]
    token = first.body["metadata"]["continue"]
    second = await api.get(CONFIG_MAPS, **{"continue": token}, labelSelector="odd=true")
    assert second.names == ["c"]


async def test_continue_token_of_a_compacted_version_is_expired_with_a_new_one(
    api: RawClient,
) -> None:
    await make(api, "a", "b", "c")
    first = await api.get(CONFIG_MAPS, limit=1)
    await api.delete(f"{CONFIG_MAPS}/b")
    api.server.storage.compact(api.server.storage.revision)
    token = first.body["metadata"]["continue"]
    answer = await api.get(CONFIG_MAPS, **{"continue": token})
    assert answer.code == 410
    assert answer.body["reason"] == "Expired"
    assert answer.body["message"].startswith("The provided continue parameter is too old")
    rest = await api.get(CONFIG_MAPS, **{"continue": answer.body["metadata"]["continue"]})
    assert rest.names == ["c"]


async def test_malformed_token_is_a_bad_request(api: RawClient) -> None:
    answer = await api.get(CONFIG_MAPS, **{"continue": "x"})
    assert answer.code == 400
    assert answer.body["message"].startswith("invalid continue token: continue key is not valid")


async def test_exact_version_lists_that_version(api: RawClient) -> None:
    await make(api, "a")
    then = (await api.get(CONFIG_MAPS)).version
    await make(api, "b")
    answer = await api.get(CONFIG_MAPS, resourceVersion=then, resourceVersionMatch="Exact")
    assert answer.names == ["a"]
    assert answer.version == then


@pytest.mark.parametrize("match", [{}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_version_otherwise_means_not_older_than(
    api: RawClient, match: dict[str, str]
) -> None:
    await make(api, "a")
    then = (await api.get(CONFIG_MAPS)).version
    await make(api, "b")
    answer = await api.get(CONFIG_MAPS, resourceVersion=then, **match)
    assert answer.names == ["a", "b"]
    assert (await api.get(CONFIG_MAPS, resourceVersion=0)).names == ["a", "b"]


async def test_compacted_exact_version_is_expired(api: RawClient) -> None:
    await make(api, "a")
    then = (await api.get(CONFIG_MAPS)).version
    await make(api, "b")
    api.server.storage.compact(api.server.storage.revision)
    answer = await api.get(CONFIG_MAPS, resourceVersion=then, resourceVersionMatch="Exact")
    assert (answer.code, answer.body["reason"]) == (410, "Expired")


async def test_version_from_the_future_times_out_with_its_cause(api: RawClient) -> None:
    now = api.server.storage.revision
    answer = await api.get(CONFIG_MAPS, resourceVersion=now + 10)
    assert answer.code == 504
    assert answer.body["reason"] == "Timeout"
    message = f"Timeout: Too large resource version: {now + 10}, current: {now}"
    assert answer.body["message"] == message
    assert answer.body["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"resourceVersionMatch": "Exact"}, id="match without version"),
        pytest.param({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, id="exactly 0"),
        pytest.param({"resourceVersionMatch": "Near", "resourceVersion": "1"}, id="no such match"),
        pytest.param({"sendInitialEvents": "true"}, id="initial events of a list"),
    ],
)
async def test_contradictory_options_are_invalid(api: RawClient, params: dict[str, str]) -> None:
    answer = await api.get(CONFIG_MAPS, **params)
    assert answer.code == 422
    assert answer.body["message"].startswith('ListOptions.meta.k8s.io "" is invalid: ')


async def test_history_covers_the_last_writes_of_the_window() -> None:
    async with serve(tls=False, window=3) as server:
        served = server.registry.find("", "v1", "configmaps")
        assert served is not None
        start = server.storage.revision
        for index in range(5):
            server.objects.create(served, "default", config_map(f"a{index}"))
        assert server.storage.compacted == start + 2


async def test_metadata_alone_is_sent_on_request(api: RawClient) -> None:
    await make(api, "a")
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    answer = await api.get(CONFIG_MAPS, accept=accept)
    assert answer.body["kind"] == "PartialObjectMetadataList"
    item = answer.body["items"][0]
    assert set(item) == {"kind", "apiVersion", "metadata"}


async def test_table_is_sent_on_request(api: RawClient) -> None:
    await make(api, "a")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    answer = await api.get(CONFIG_MAPS, accept=accept)
    assert answer.body["kind"] == "Table"
    assert answer.body["columnDefinitions"][0]["name"] == "Name"
    assert answer.body["rows"][0]["cells"][0] == "a"
    assert answer.body["rows"][0]["object"]["metadata"]["name"] == "a"


async def test_unserved_format_is_not_acceptable(api: RawClient) -> None:
    answer = await api.get(CONFIG_MAPS, accept="text/csv")
    assert (answer.code, answer.body["reason"]) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("param", "value", "code"),
    [
        ("resourceVersion", "9" * 5000, 400),
        ("resourceVersion", "+5", 400),
        ("resourceVersion", str(2**64), 400),
        ("limit", "9" * 5000, 400),
        ("limit", "1_0", 400),
        ("limit", "0" * 5000 + "1", 200),
        ("timeoutSeconds", "9" * 400, 400),
        ("timeoutSeconds", str(2**63 - 1), 200),
        ("labelSelector", "a>" + "9" * 5000, 400),
    ],
)
async def test_number_that_fits_no_64_bits_is_a_bad_request(
    api: RawClient, param: str, value: str, code: int
) -> None:
    await make(api, "a")
    answer = await api.get(CONFIG_MAPS, **{param: value})
    assert answer.code == code


async def test_watch_from_a_version_of_too_many_digits_is_refused(api: RawClient) -> None:
    answer = await api.get(CONFIG_MAPS, watch=True, resourceVersion="9" * 5000)
    assert (answer.code, "value out of range" in answer.body["message"]) == (500, True)


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        pytest.param(
            {"v": "meta.k8s.io/v1", "start": "a"},
            ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            id="no version",
        ),
        pytest.param(
            {"v": "meta.k8s.io/v1", "rv": 1},
            ": encoded start key empty (version meta.k8s.io/v1)",
            id="no start",
        ),
        pytest.param(
            {"v": "meta.k8s.io/v1", "rv": 1, "start": "../secrets"}, ": ../secrets", id="outside"
        ),
    ],
)
async def test_forged_continue_token_is_a_bad_request(
    api: RawClient, token: dict[str, object], problem: str
) -> None:
    text = base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")
    answer = await api.get(CONFIG_MAPS, **{"continue": text})
    assert answer.code == 400
    assert answer.body["kind"] == "Status"
    said = f"invalid continue token: continue key is not valid{problem}"
    assert answer.body["message"] == said


async def test_selector_may_be_long(api: RawClient) -> None:
    await make(api, "a")
    names = ",".join(f"!label-{index}" for index in range(2500))
    assert (await api.get(CONFIG_MAPS, labelSelector=names)).names == ["a"]


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("n>1,n>2", False),
        ("n>1,n<3", True),
        ("n<3,n<2", False),
        ("n in (1,2),n in (2,3)", True),
        ("n in (1),n in (2)", False),
        ("n!=1,n!=2", False),
        ("n!=1,n!=3", True),
        ("absent!=1", True),
        ("absent=1", False),
        ("n,!absent", True),
        ("n,!n", False),
    ],
)
async def test_requirements_on_one_label_all_hold(api: RawClient, text: str, selects: bool) -> None:
    labelled = config_map("a")
    labelled["metadata"]["labels"] = {"n": "2"}
    await api.create(CONFIG_MAPS, labelled)
    assert (await api.get(CONFIG_MAPS, labelSelector=text)).names == (["a"] if selects else [])


@pytest.mark.parametrize("name", ["labelSelector", "fieldSelector"])
async def test_time_of_a_selector_of_spaces_is_linear(api: RawClient, name: str) -> None:
    assert (await api.get(CONFIG_MAPS, **{name: " " * 5000})).code in (200, 400)
