"""Server-side apply: what a configuration sets, who owns it, and what happens to the rest."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.field_managers import APPLY, apply, managers
from tests.contract.objects import config_map, pod
from tests.local.apiserver.raw_client import JSON_PATCH, MERGE, STRATEGIC


def config(data: JSON | None = None, **meta: Any) -> JSON:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return head | config_map(data=data or {}, **meta)


async def test_apply_creates_and_then_changes(api: Api) -> None:
    path = api.path("configmaps", "a")
    created = await apply(api, path, config({"k": "v"}))
    assert (created.code, created.body["data"]) == (201, {"k": "v"})
    assert managers(created) == {"me Apply": {"f:data": {"f:k": {}}}}

    again = await apply(api, path, config({"k": "v"}))
    assert (again.code, again.version) == (200, created.version)

    changed = await apply(api, path, config({"k": "w", "l": "x"}, labels={"a": "b"}))
    assert changed.body["data"] == {"k": "w", "l": "x"}
    assert managers(changed) == {
        "me Apply": {"f:data": {"f:k": {}, "f:l": {}}, "f:metadata": {"f:labels": {"f:a": {}}}}
    }


async def test_field_that_is_no_longer_applied_is_removed(api: Api) -> None:
    path = api.path("configmaps", "a")
    await apply(api, path, config({"k": "v", "l": "x"}, labels={"a": "b"}))
    answer = await apply(api, path, config({"l": "x"}))
    assert (answer.body["data"], "labels" in answer.body["metadata"]) == ({"l": "x"}, False)
    answer = await apply(api, path, {"apiVersion": "v1", "kind": "ConfigMap"})
    assert (answer.body.get("data"), managers(answer)) == (None, {})


async def test_field_of_two_appliers_stays_until_both_drop_it(api: Api) -> None:
    path = api.path("configmaps", "a")
    await apply(api, path, config({"k": "v"}))
    both = await apply(api, path, config({"k": "v"}), manager="other")
    assert managers(both) == {name: {"f:data": {"f:k": {}}} for name in ("me Apply", "other Apply")}

    assert (await apply(api, path, config({}))).body["data"] == {"k": "v"}
    assert "data" not in (await apply(api, path, config({}), manager="other")).body


async def test_conflict_names_managers_and_fields(api: Api) -> None:
    path = api.path("configmaps", "a")
    await apply(api, path, config({"k": "v", "l": "x"}))
    one = await apply(api, path, config({"k": "w"}), manager="other")
    assert api.failure_text(one) == (
        "409 Conflict: [FieldManagerConflict .data.k] "
        'Apply failed with 1 conflict: conflict with "me": .data.k'
    )
    await api.patch(path, {"data": {"l": "y"}}, MERGE, fieldManager="editor")
    two = await apply(api, path, config({"k": "w", "l": "z"}), manager="other")
    assert two.body["message"] == (
        "Apply failed with 2 conflicts: "
        'conflicts with "editor" using v1:\n- .data.l\nconflicts with "me":\n- .data.k'
    )
    # In any order, also on a real server.
    causes = sorted(two.body["details"]["causes"], key=lambda cause: str(cause["message"]))
    assert causes == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "editor" using v1',
            "field": ".data.l",
        },
        {"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.k"},
    ]
    assert (await api.get(path)).body["data"] == {"k": "v", "l": "y"}


async def test_forced_apply_takes_fields_over(api: Api) -> None:
    path = api.path("configmaps", "a")
    await apply(api, path, config({"k": "v", "l": "x"}))
    answer = await apply(api, path, config({"k": "w"}), manager="other", force=True)
    assert answer.body["data"] == {"k": "w", "l": "x"}
    assert managers(answer) == {
        "me Apply": {"f:data": {"f:l": {}}},
        "other Apply": {"f:data": {"f:k": {}}},
    }


async def test_updates_and_patches_own_what_they_change(api: Api) -> None:
    path, body = api.path("configmaps", "a"), config_map(labels={"x": "y"})
    created = await api.post(api.path("configmaps"), body, fieldManager="creator")
    labels: JSON = {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}
    assert managers(created) == {"creator Update": {"f:data": {".": {}, "f:k": {}}, **labels}}

    updated = await api.put(path, {**body, "data": {"k": "w", "l": "m"}}, fieldManager="writer")
    assert managers(updated) == {
        "creator Update": {"f:data": {}, **labels},
        "writer Update": {"f:data": {"f:k": {}, "f:l": {}}},
    }
    same = await api.put(path, {**body, "data": {"k": "w", "l": "m"}}, fieldManager="third")
    assert same.version == updated.version

    patched = await api.patch(path, {"data": {"k": None}}, MERGE, fieldManager="patcher")
    assert managers(patched) == {
        "creator Update": {"f:data": {}, **labels},
        "writer Update": {"f:data": {"f:l": {}}},
    }


async def test_manager_without_a_name_is_the_user_agent(api: Api) -> None:
    headers = {"User-Agent": "tool/1.0 (linux)"}
    async with api.session.post(
        api.path("configmaps"), json=config_map(), headers=headers
    ) as response:
        created = await response.json()
    assert [each["manager"] for each in created["metadata"]["managedFields"]] == ["tool"]


async def test_lists_of_a_pod_are_owned_by_item(api: Api) -> None:
    spec: JSON = {
        "containers": [
            {
                "name": "main",
                "image": "i",
                "args": ["a"],
                "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 80}],
            }
        ],
        "nodeSelector": {"a": "b"},
    }
    body = {"apiVersion": "v1", "kind": "Pod"} | pod(meta={"finalizers": ["a.b/c"]}, **spec)
    applied = await apply(api, api.path("pods", "a"), body)
    container: JSON = {
        ".": {},
        "f:args": {},
        "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
        "f:image": {},
        "f:name": {},
        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
    }
    fields: JSON = {
        "f:metadata": {"f:finalizers": {'v:"a.b/c"': {}}},
        "f:spec": {
            "f:automountServiceAccountToken": {},
            "f:containers": {'k:{"name":"main"}': container},
            "f:nodeSelector": {},
            "f:schedulerName": {},
        },
    }
    assert managers(applied) == {"me Apply": fields}

    change = {"spec": {"containers": [{"name": "main", "image": "j"}]}}
    patched = await api.patch(api.path("pods", "a"), change, STRATEGIC, fieldManager="editor")
    image: JSON = {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:image": {}}}}}
    assert managers(patched)["editor Update"] == image
    refused = await apply(api, api.path("pods", "a"), body)
    assert refused.body["message"] == (
        "Apply failed with 1 conflict: conflict with "
        '"editor" using v1: .spec.containers[name="main"].image'
    )
    await api.patch(api.path("pods", "a"), {"metadata": {"finalizers": None}})


async def test_new_pod_is_owned_with_its_defaults(api: Api) -> None:
    created = await api.post(api.path("pods"), pod(), fieldManager="creator")
    (fields,) = managers(created).values()
    assert set(fields) == {"f:spec"}
    (container,) = fields["f:spec"]["f:containers"].values()
    assert container == {
        ".": {},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }


async def test_status_has_managers_of_its_own(gadget_api: Api) -> None:
    api, path = gadget_api, gadget_api.path("gadgets", "a", group=V1)
    await apply(api, path, gadget(status={"phase": "Failed"}))
    state = {"status": {"phase": "Ready"}}
    patched = await api.patch(f"{path}/status", state, fieldManager="node")
    assert managers(patched) == {
        "me Apply": {"f:spec": {"f:size": {}}},
        "node Update status": {"f:status": {".": {}, "f:phase": {}}},
    }
    body = {"apiVersion": V1, "kind": "Gadget", "status": {"phase": "Failed"}}
    refused = await apply(api, f"{path}/status", body)
    assert refused.body["message"] == (
        'Apply failed with 1 conflict: conflict with "node" with subresource "status" '
        f"using {V1}: .status.phase"
    )
    forced = await apply(api, f"{path}/status", body, force=True)
    assert forced.body["status"] == {"phase": "Failed"}
    absent = await apply(api, api.path("gadgets", "none/status", group=V1), body)
    assert absent.code == 404


async def test_custom_lists_merge_by_their_type(gadget_api: Api) -> None:
    api, path = gadget_api, gadget_api.path("gadgets", "a", group=V1)
    lists: JSON = {"tags": ["t", "u"], "ports": [{"name": "x"}], "limits": {"c": 1}}
    first = await apply(api, path, gadget(**lists, open={"a": {"b": [1]}}))
    assert managers(first)["me Apply"]["f:spec"] == {
        "f:limits": {"f:c": {}},
        "f:open": {"f:a": {".": {}, "f:b": {}}},
        "f:ports": {'k:{"name":"x"}': {".": {}, "f:name": {}}},
        "f:size": {},
        "f:tags": {'v:"t"': {}, 'v:"u"': {}},
    }
    lists = {"tags": ["0", "u"], "ports": [{"name": "y"}, {"name": "x", "port": 7}]}
    other = await apply(api, path, gadget(**lists), manager="other")
    assert other.body["spec"]["tags"] == ["t", "0", "u"]
    assert other.body["spec"]["ports"] == [{"name": "y", "port": 80}, {"name": "x", "port": 7}]

    last = await apply(api, path, gadget(limits={"d": 2}))
    spec = last.body["spec"]
    assert (spec["tags"], spec["limits"]) == (["0", "u"], {"d": 2})
    assert [port["name"] for port in spec["ports"]] == ["y", "x"]


@pytest.mark.parametrize("empty", [[], [{}]], ids=["no entry", "empty entry"])
async def test_managers_can_be_reset(api: Api, empty: list[JSON]) -> None:
    path = api.path("configmaps", "a")
    await apply(api, path, config({"k": "v"}))
    change = [{"op": "replace", "path": "/metadata/managedFields", "value": empty}]
    assert managers(await api.patch(path, change, JSON_PATCH)) == {}
    # Nobody is tracked any more, until the next apply.
    assert managers(await api.patch(path, {"data": {"l": "m"}})) == {}
    refused = await apply(api, path, config({"l": "x"}))
    assert refused.body["message"] == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.l'
    )
    kept = await apply(api, path, config({"l": "m"}))
    assert managers(kept) == {
        "before-first-apply Update": {"f:data": {".": {}, "f:k": {}, "f:l": {}}},
        "me Apply": {"f:data": {"f:l": {}}},
    }


async def test_update_without_managers_keeps_them(api: Api) -> None:
    applied = await apply(api, api.path("configmaps", "a"), config({"k": "v"}))
    answer = await api.put(api.path("configmaps", "a"), config({"k": "v"}), fieldManager="w")
    assert managers(answer) == managers(applied)


async def test_kubectl_takes_over_what_it_applied_by_itself(api: Api) -> None:
    key = "kubectl.kubernetes.io/last-applied-configuration"
    last = '{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a"}}\n'
    body = config({"k": "v"}, annotations={key: last})
    await api.post(api.path("configmaps"), body, fieldManager="kubectl-client-side-apply")
    path = api.path("configmaps", "a")
    assert (await apply(api, path, config({"k": "w"}))).code == 409
    answer = await apply(api, path, config({"k": "w"}), manager="kubectl")
    assert (answer.code, answer.body["data"]) == (200, {"k": "w"})
    assert answer.body["metadata"]["annotations"][key] == last.replace('"v"}', '"w"}', 1)


async def test_dry_run_stores_nothing(api: Api) -> None:
    path = api.path("configmaps", "a")
    answer = await apply(api, path, config({"k": "v"}), dryRun="All")
    assert (answer.code, managers(answer)) == (201, {"me Apply": {"f:data": {"f:k": {}}}})
    assert (await api.get(path)).code == 404


async def test_whole_float_is_applied_as_an_integer(gadget_api: Api) -> None:
    path = gadget_api.path("gadgets", "a", group=V1)
    # A rule reads the first, and the scale subresource the second.
    answer = await apply(gadget_api, path, gadget(size=3.0, replicas=2.0, ratio=0.5))
    assert answer.code == 201, answer.body
    spec = answer.body["spec"]
    assert (str(spec["size"]), str(spec["replicas"]), spec["ratio"]) == ("3", "2", 0.5)
    again = await apply(gadget_api, path, gadget(size=3, replicas=2, ratio=0.5))
    assert again.version == answer.version


async def test_yaml_is_applied(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n"
    answer = await api.call(
        "PATCH", api.path("configmaps", "a"), body, type_=APPLY, fieldManager="me"
    )
    assert (answer.code, answer.body["data"]) == (201, {"k": "v"})
