"""Writes that succeed: what the server adds, keeps, drops and counts."""

import re

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map, pod
from tests.local.apiserver.raw_client import JSON_PATCH, STRATEGIC


@pytest.fixture
def gadgets(gadget_api: Api) -> str:
    return gadget_api.path("gadgets", group=V1)


async def test_new_object_has_the_servers_metadata(gadget_api: Api, gadgets: str) -> None:
    meta = (await gadget_api.create(gadgets, gadget()))["metadata"]
    assert re.fullmatch("[0-9a-f-]{36}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert (meta["generation"], meta["namespace"]) == (1, gadget_api.namespace)
    assert meta["resourceVersion"].isdecimal()


async def test_server_owned_metadata_is_ignored_in_requests(gadget_api: Api, gadgets: str) -> None:
    said = {"uid": "u", "generation": 7, "creationTimestamp": "2000-01-01T00:00:00Z"}
    gone = {"deletionTimestamp": "2000-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}
    meta = (await gadget_api.create(gadgets, gadget(meta=said | gone)))["metadata"]
    assert meta["uid"] != "u"
    assert meta["generation"] == 1
    assert not meta["creationTimestamp"].startswith("2000")
    assert not set(gone) & set(meta)


async def test_generated_name_is_the_prefix_and_five_characters(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), {"metadata": {"generateName": "job-"}})
    assert re.fullmatch("job-[bcdfghjklmnpqrstvwxz2456789]{5}", answer.body["metadata"]["name"])


async def test_long_generate_name_is_truncated(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), {"metadata": {"generateName": "x" * 80}})
    assert len(answer.body["metadata"]["name"]) == 63


async def test_defaults_are_filled_in_and_unknown_fields_pruned(
    gadget_api: Api, gadgets: str
) -> None:
    created = await gadget_api.create(gadgets, gadget(what=1, ports=[{"name": "a", "x": 1}]))
    assert created["spec"] == {
        "size": 1,
        "color": "red",
        "nested": {"depth": 3},
        "ports": [{"name": "a", "port": 80}],
    }


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param({"color": None}, {"color": "red"}, id="null takes the default"),
        pytest.param({"maybe": None}, {"maybe": None}, id="nullable null stays"),
        pytest.param({"open": {"a": {"b": 1}}}, {"open": {"a": {"b": 1}}}, id="open object"),
        pytest.param({"nested": {"x": 1}}, {"nested": {"depth": 3}}, id="pruned and filled"),
        pytest.param({"amount": 1}, {"amount": 1}, id="integer"),
        pytest.param({"amount": "50%"}, {"amount": "50%"}, id="or string"),
        pytest.param({"limits": {"a": 1}}, {"limits": {"a": 1}}, id="map"),
        pytest.param({"ratio": 0.5}, {"ratio": 0.5}, id="fraction"),
    ],
)
async def test_stored_form_of_a_field(
    gadget_api: Api, gadgets: str, sent: JSON, kept: JSON
) -> None:
    spec = (await gadget_api.create(gadgets, gadget(**sent)))["spec"]
    assert {name: spec[name] for name in kept} == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param({"limits": {"a": 3.0}}, "{'a': 3}", id="integer"),
        pytest.param({"limits": {"a": 2.0**53 - 1}}, "{'a': 9007199254740991}", id="large"),
        pytest.param({"limits": {"a": 2**63 - 1}}, "{'a': 9223372036854775807}", id="largest"),
        pytest.param({"ratio": 2.0}, "2", id="number"),
        pytest.param({"ratio": 2.5}, "2.5", id="fraction"),
        pytest.param({"amount": 50.0}, "50", id="integer or string"),
        pytest.param({"open": {"a": [1e3, -0.5]}}, "{'a': [1000, -0.5]}", id="open object"),
    ],
)
async def test_whole_number_is_stored_as_an_integer(
    gadget_api: Api, gadgets: str, sent: JSON, kept: str
) -> None:
    (name,) = sent
    created = await gadget_api.create(gadgets, gadget())
    path = f"{gadgets}/{created['metadata']['name']}"
    assert (await gadget_api.patch(path, {"spec": sent})).code == 200
    stored = await gadget_api.get(path)
    assert str(stored.body["spec"][name]) == kept
    again = gadget(**sent)
    again["metadata"] = {"name": "again"}
    assert str((await gadget_api.create(gadgets, again))["spec"][name]) == kept


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        pytest.param({"labels": {"a": None}}, {"labels": {"a": ""}}, id="null label"),
        pytest.param({"labels": {}}, {}, id="no labels"),
        pytest.param({"labels": None}, {}, id="null labels"),
        pytest.param({"foo": 1, "selfLink": "x"}, {}, id="unknown"),
        pytest.param({"annotations": {"A/C": "x"}}, {"annotations": {"A/C": "x"}}, id="capital"),
    ],
)
async def test_stored_form_of_metadata(api: Api, meta: JSON, kept: JSON) -> None:
    created = (await api.create(api.path("configmaps"), config_map(**meta)))["metadata"]
    server = ("creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid")
    assert {name: value for name, value in created.items() if name not in server} == kept


async def test_dry_run_returns_the_result_and_stores_nothing(gadget_api: Api, gadgets: str) -> None:
    dry = await gadget_api.post(gadgets, gadget(), dryRun="All")
    assert (dry.code, dry.body["spec"]["color"]) == (201, "red")
    assert "resourceVersion" not in dry.body["metadata"]
    assert (await gadget_api.get(f"{gadgets}/a")).code == 404
    await gadget_api.create(gadgets, gadget())
    patched = await gadget_api.patch(f"{gadgets}/a", {"spec": {"size": 2}}, dryRun="All")
    assert patched.body["spec"]["size"] == 2
    deleted = await gadget_api.delete(f"{gadgets}/a", dryRun="All")
    assert deleted.body["status"] == "Success"
    assert (await gadget_api.get(f"{gadgets}/a")).body["spec"]["size"] == 1
    assert (await gadget_api.post(gadgets, gadget(), dryRun="All")).code == 409


async def test_existing_name_already_exists(gadget_api: Api, gadgets: str) -> None:
    await gadget_api.create(gadgets, gadget())
    answer = await gadget_api.post(gadgets, gadget())
    assert gadget_api.failure_text(answer) == (
        '409 AlreadyExists: gadgets.contract.dlctl.dev "a" already exists'
    )
    assert answer.body["details"] == {
        "name": "a",
        "group": "contract.dlctl.dev",
        "kind": "gadgets",
    }


async def test_absent_namespace_is_not_found(api: Api) -> None:
    answer = await api.post("/api/v1/namespaces/nope/configmaps", config_map())
    assert api.failure_text(answer) == '404 NotFound: namespaces "nope" not found'
    assert answer.body["details"] == {"name": "nope", "kind": "namespaces"}


async def test_generation_grows_only_with_changes_of_the_spec(
    gadget_api: Api, gadgets: str
) -> None:
    await gadget_api.create(gadgets, gadget())
    changes: list[tuple[str, JSON, int]] = [
        ("a", {"metadata": {"labels": {"x": "y"}}}, 1),
        ("a/status", {"status": {"phase": "Ready"}}, 1),
        ("a", {"spec": {"size": 2}}, 2),
        ("a", {"spec": {"size": 2}}, 2),
        ("a", {"metadata": {"generation": 50}}, 2),
        ("a", {"status": {"phase": "Failed"}}, 2),
    ]
    for path, change, generation in changes:
        answer = await gadget_api.patch(f"{gadgets}/{path}", change)
        assert answer.body["metadata"]["generation"] == generation, change
    assert (await gadget_api.get(f"{gadgets}/a")).body["status"] == {"phase": "Ready"}


async def test_status_is_dropped_on_creation(gadget_api: Api, gadgets: str) -> None:
    created = await gadget_api.create(gadgets, gadget(status={"phase": "nonsense"}))
    assert "status" not in created


async def test_status_subresource_writes_only_the_status(gadget_api: Api, gadgets: str) -> None:
    await gadget_api.create(gadgets, gadget())
    change = {
        "metadata": {"labels": {"x": "y"}, "finalizers": ["a.b/c"]},
        "spec": {"size": -1},
        "status": {"phase": "Ready"},
    }
    body = (await gadget_api.patch(f"{gadgets}/a/status", change)).body
    assert (body["spec"]["size"], body["status"]) == (1, {"phase": "Ready"})
    assert not {"labels", "finalizers"} & set(body["metadata"])


async def test_uid_in_a_patch_of_a_status_is_no_precondition(gadget_api: Api, gadgets: str) -> None:
    await gadget_api.create(gadgets, gadget())
    change = {"metadata": {"uid": "of another"}, "status": {"phase": "Ready"}}
    answer = await gadget_api.patch(f"{gadgets}/a/status", change)
    assert (answer.code, answer.body["status"]) == (200, {"phase": "Ready"})


@pytest.mark.parametrize(("uid", "code"), [(None, 200), ("of another", 422)])
async def test_uid_test_in_a_json_patch_of_a_status_is_a_precondition(
    gadget_api: Api, gadgets: str, uid: str | None, code: int
) -> None:
    created = await gadget_api.create(gadgets, gadget())
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": uid or created["metadata"]["uid"]},
        {"op": "add", "path": "/status", "value": {"phase": "Ready"}},
    ]
    answer = await gadget_api.patch(f"{gadgets}/a/status", patch, JSON_PATCH)
    assert answer.code == code


async def test_version_in_a_patch_of_a_status_is_a_precondition(
    gadget_api: Api, gadgets: str
) -> None:
    await gadget_api.create(gadgets, gadget())
    change = {"metadata": {"resourceVersion": "1"}, "status": {"phase": "Ready"}}
    assert (await gadget_api.patch(f"{gadgets}/a/status", change)).code == 409


async def test_pod_status_update_writes_labels_but_no_spec(api: Api) -> None:
    await api.create(api.path("pods"), pod())
    change = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }
    body = (await api.patch(api.path("pods", "a/status"), change)).body
    assert (body["metadata"]["labels"], body["status"]["phase"]) == ({"x": "y"}, "Running")
    assert "nodeName" not in body["spec"]


async def test_conditions_of_a_pod_merge_by_their_type(api: Api) -> None:
    await api.create(api.path("pods"), pod())
    for type_ in ("Ready", "Initialized", "Ready"):
        change = {"status": {"conditions": [{"type": type_, "status": "True"}]}}
        await api.patch(api.path("pods", "a/status"), change, STRATEGIC)
    conditions = (await api.get(api.path("pods", "a"))).body["status"]["conditions"]
    types = [each["type"] for each in conditions]
    assert sorted(types) == ["Initialized", "Ready"]


async def test_update_of_a_built_in_needs_no_version(api: Api) -> None:
    await api.create(api.path("configmaps"), config_map())
    answer = await api.put(api.path("configmaps", "a"), config_map(data={"n": "1"}))
    assert (answer.code, answer.body["data"]) == (200, {"n": "1"})


async def test_yaml_is_read(api: Api) -> None:
    body = b"metadata: {name: a}\ndata: {k: v}\n"
    answer = await api.post(api.path("configmaps"), body, type_="application/yaml")
    assert (answer.code, answer.body["data"]) == (201, {"k": "v"})
