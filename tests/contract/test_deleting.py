"""Deletion: immediate, with grace period, with finalizers, and of dependents."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map, pod, service
from tests.support.owner_references import owned_by

OPTIONS: JSON = {"kind": "DeleteOptions", "apiVersion": "v1"}


@pytest.fixture
def gadgets(gadget_api: Api) -> str:
    return gadget_api.path("gadgets", group=V1)


async def test_immediate_deletion_returns_a_success_with_the_name(
    gadget_api: Api, gadgets: str
) -> None:
    created = await gadget_api.create(gadgets, gadget())
    answer = await gadget_api.delete(f"{gadgets}/a")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "group": "contract.dlctl.dev",
            "kind": "gadgets",
            "uid": created["metadata"]["uid"],
        },
    }


async def test_unscheduled_pod_is_deleted_at_once_and_returned(api: Api) -> None:
    await api.create(api.path("pods"), pod())
    answer = await api.delete(api.path("pods", "a"))
    assert (answer.code, answer.body["kind"]) == (200, "Pod")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(api.path("pods", "a"))).code == 404


async def test_scheduled_pod_has_its_grace_period(api: Api) -> None:
    path = api.path("pods", "a")
    await api.create(api.path("pods"), pod(node="nowhere", terminationGracePeriodSeconds=7))
    meta = (await api.delete(path)).body["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (7, 2)
    assert (await api.delete(path)).body["metadata"]["deletionGracePeriodSeconds"] == 7
    shorter = await api.delete(path, gracePeriodSeconds=3)
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 3
    await api.delete(path, gracePeriodSeconds=0)
    assert (await api.get(path)).code == 404


async def test_response_to_a_force_deletion_has_its_version(api: Api) -> None:
    path = api.path("pods", "a")
    await api.create(api.path("pods"), pod(node="nowhere"))
    asked = (await api.delete(path)).body["metadata"]
    held = {"preconditions": {"uid": asked["uid"]}, "gracePeriodSeconds": 0}
    answer = await api.delete(path, held)
    assert (answer.code, answer.body["metadata"]["deletionGracePeriodSeconds"]) == (200, 0)
    assert int(answer.body["metadata"]["resourceVersion"]) > int(asked["resourceVersion"])
    assert (await api.get(path)).code == 404


async def test_finalizer_keeps_a_force_deleted_pod(api: Api) -> None:
    path = api.path("pods", "a")
    created = pod(node="nowhere")
    created["metadata"]["finalizers"] = ["a.b/c"]
    await api.create(api.path("pods"), created)
    await api.delete(path)
    forced = (await api.delete(path, gracePeriodSeconds=0)).body["metadata"]
    assert (forced["deletionGracePeriodSeconds"], forced["finalizers"]) == (0, ["a.b/c"])
    there = (await api.get(path)).body["metadata"]
    assert there["resourceVersion"] == forced["resourceVersion"]
    assert there["deletionGracePeriodSeconds"] == 0
    again = (await api.delete(path, gracePeriodSeconds=0)).body["metadata"]
    assert again["resourceVersion"] == there["resourceVersion"]
    await api.patch(path, {"metadata": {"finalizers": None}})
    assert (await api.get(path)).code == 404


async def test_finished_pod_has_no_grace_period(api: Api) -> None:
    path = api.path("pods", "a")
    await api.create(api.path("pods"), pod(node="nowhere"))
    await api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})
    assert (await api.delete(path)).body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(path)).code == 404


async def test_finalizer_keeps_an_object_until_it_is_removed(gadget_api: Api, gadgets: str) -> None:
    path = f"{gadgets}/a"
    await gadget_api.create(gadgets, gadget(meta={"finalizers": ["a.b/c"]}))
    meta = (await gadget_api.delete(path)).body["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (0, 2)
    assert (await gadget_api.delete(path)).code == 200
    more = {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}
    assert gadget_api.failure_text(await gadget_api.patch(path, more)) == (
        '422 Invalid: [FieldValueForbidden metadata.finalizers] Gadget.contract.dlctl.dev "a" is '
        "invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
        'being deleted, found new finalizers []string{"a.b/d"}'
    )
    assert (await gadget_api.patch(path, {"metadata": {"finalizers": None}})).code == 200
    assert (await gadget_api.get(path)).code == 404


async def test_matching_preconditions_allow_deletion(api: Api) -> None:
    meta = (await api.create(api.path("configmaps"), config_map()))["metadata"]
    held = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    answer = await api.delete(api.path("configmaps", "a"), {"preconditions": held})
    assert answer.code == 200


async def test_query_may_have_preconditions_unless_there_is_a_body(api: Api) -> None:
    path = api.path("services")
    version = (await api.create(path, service(clusterIP="None")))["metadata"]["resourceVersion"]
    await api.create(path, service("b", clusterIP="None"))
    answer = await api.delete(f"{path}/b", uid="another")
    assert api.failure_text(answer).startswith(
        '409 Conflict: Operation cannot be fulfilled on Service "b": the UID in the precondition'
    )
    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    await api.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})
    answer = await api.delete(path, **exact)
    assert api.failure_text(answer).startswith(
        '409 Conflict: Operation cannot be fulfilled on Service "a": the ResourceVersion in the '
    )
    answer = await api.delete(path, OPTIONS, **exact)
    assert (answer.code, answer.names, (await api.get(path)).names) == (200, ["a"], ["b"])


async def test_deletecollection_respects_its_selector(api: Api) -> None:
    path = api.path("configmaps")
    for name in "ab":
        await api.create(path, config_map(name, labels={"x": name}))
    answer = await api.delete(path, labelSelector="x=a")
    assert (answer.body["kind"], answer.names) == ("ConfigMapList", ["a"])
    assert (await api.get(path, labelSelector="x")).names == ["b"]


async def test_deletecollection_excludes_names(api: Api) -> None:
    path = api.path("pods")
    for name in "abc":
        await api.create(path, pod(name, meta={"labels": {"x": ""}}))
    fields = "metadata.name!=a,metadata.name!=c"
    answer = await api.delete(path, labelSelector="x=", fieldSelector=fields)
    assert (answer.code, answer.names) == (200, ["b"])
    assert (await api.get(path)).names == ["a", "c"]


async def test_deletecollection_of_an_exact_version_deletes_the_names_listed_there(
    api: Api,
) -> None:
    path = api.path("services")
    for name in "abc":
        await api.create(path, service(name, clusterIP="None"))
    exact = {"resourceVersion": (await api.get(path)).version, "resourceVersionMatch": "Exact"}
    await api.delete(f"{path}/a")
    await api.delete(f"{path}/b")
    # Another object by now, but of a name in the list.
    await api.create(path, service("b", clusterIP="None"))
    await api.create(path, service("d", clusterIP="None"))
    answer = await api.delete(path, OPTIONS, **exact)
    assert (answer.code, answer.names) == (200, ["a", "b", "c"])
    assert (await api.get(path)).names == ["d"]


async def test_deletecollection_leaves_terminating_objects_alone(api: Api) -> None:
    path = api.path("pods")
    await api.create(path, pod("a", node="nowhere", terminationGracePeriodSeconds=90))
    await api.create(path, pod("b", node="nowhere", terminationGracePeriodSeconds=90))
    first = (await api.delete(f"{path}/a", gracePeriodSeconds=60)).body["metadata"]
    answer = await api.delete(path, timeout="10.0s")
    assert (answer.code, answer.names) == (200, ["a", "b"])
    graces = [one["metadata"].get("deletionGracePeriodSeconds") for one in answer.body["items"]]
    assert graces == [60, None]
    left = [(await api.get(f"{path}/{name}")).body["metadata"] for name in "ab"]
    assert left[0]["resourceVersion"] == first["resourceVersion"]
    assert left[1]["deletionGracePeriodSeconds"] == 90


@pytest.mark.timeout(90)
@pytest.mark.parametrize("policy", [{}, {"propagationPolicy": "Background"}], ids=["none", "set"])
async def test_dependents_are_deleted_after_their_owner(
    gadget_api: Api, gadgets: str, policy: JSON
) -> None:
    owner = await gadget_api.create(gadgets, gadget())
    child = config_map("child", ownerReferences=owned_by(owner))
    await gadget_api.create(gadget_api.path("configmaps"), child)
    assert (await gadget_api.delete(f"{gadgets}/a", **policy)).body["status"] == "Success"
    await gadget_api.wait_gone(gadget_api.path("configmaps", "child"))


@pytest.mark.timeout(90)
async def test_foreground_deletion_waits_for_dependents(gadget_api: Api, gadgets: str) -> None:
    owner = await gadget_api.create(gadgets, gadget())
    held = config_map("child", ownerReferences=owned_by(owner), finalizers=["a.b/c"])
    path = gadget_api.path("configmaps", "child")
    await gadget_api.create(gadget_api.path("configmaps"), held)
    answer = await gadget_api.delete(f"{gadgets}/a", propagationPolicy="Foreground")
    assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await gadget_api.wait_until(path, lambda a: "deletionTimestamp" in a.body["metadata"])
    assert (await gadget_api.get(f"{gadgets}/a")).code == 200
    await gadget_api.patch(path, {"metadata": {"finalizers": None}})
    await gadget_api.wait_gone(f"{gadgets}/a")


async def test_foreground_deletion_does_not_wait_for_non_blocking_dependents(
    gadget_api: Api, gadgets: str
) -> None:
    owner = await gadget_api.create(gadgets, gadget())
    references = owned_by(owner, block=False)
    held = config_map("child", ownerReferences=references, finalizers=["a.b/c"])
    path = gadget_api.path("configmaps", "child")
    await gadget_api.create(gadget_api.path("configmaps"), held)
    await gadget_api.delete(f"{gadgets}/a", propagationPolicy="Foreground")
    await gadget_api.wait_gone(f"{gadgets}/a")
    await gadget_api.patch(path, {"metadata": {"finalizers": None}})


async def test_orphans_are_kept_without_their_owner_reference(
    gadget_api: Api, gadgets: str
) -> None:
    owner = await gadget_api.create(gadgets, gadget())
    child = config_map("child", ownerReferences=owned_by(owner))
    path = gadget_api.path("configmaps", "child")
    await gadget_api.create(gadget_api.path("configmaps"), child)
    answer = await gadget_api.delete(f"{gadgets}/a", {"propagationPolicy": "Orphan"})
    assert answer.body["metadata"]["finalizers"] == ["orphan"]
    await gadget_api.wait_gone(f"{gadgets}/a")
    assert "ownerReferences" not in (await gadget_api.get(path)).body["metadata"]


async def test_dependent_of_a_nonexistent_owner_is_collected(gadget_api: Api, gadgets: str) -> None:
    owner = await gadget_api.create(gadgets, gadget())
    owner["metadata"] |= {"name": "b", "uid": "11111111-2222-3333-4444-555555555555"}
    child = config_map("child", ownerReferences=owned_by(owner))
    await gadget_api.create(gadget_api.path("configmaps"), child)
    await gadget_api.wait_gone(gadget_api.path("configmaps", "child"))


async def test_dependent_of_two_owners_loses_one(gadget_api: Api, gadgets: str) -> None:
    owners = [await gadget_api.create(gadgets, gadget(name)) for name in "ab"]
    references = [owned_by(owner)[0] | {"controller": False} for owner in owners]
    path = gadget_api.path("configmaps", "child")
    child = config_map("child", ownerReferences=references)
    await gadget_api.create(gadget_api.path("configmaps"), child)
    await gadget_api.delete(f"{gadgets}/a")
    left = await gadget_api.wait_until(
        path, lambda a: len(a.body["metadata"]["ownerReferences"]) == 1
    )
    assert left.body["metadata"]["ownerReferences"][0]["name"] == "b"


async def test_namespace_is_deleted_with_its_contents_and_accepts_no_more(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}"
    held = config_map("held", finalizers=["a.b/c"])
    await api.create(api.path("configmaps"), held)
    await api.create(api.path("configmaps"), config_map("free"))
    deleted = await api.delete(path)
    assert (deleted.code, deleted.body["status"]["phase"]) == (200, "Terminating")
    assert deleted.body["spec"]["finalizers"] == ["kubernetes"]
    await api.wait_gone(api.path("configmaps", "free"))
    answer = await api.post(api.path("configmaps"), config_map("late"))
    assert api.failure_text(answer) == (
        '403 Forbidden: [NamespaceTerminating metadata.namespace] configmaps "late" is forbidden: '
        "unable to create new content in namespace NAMESPACE because it is being terminated"
    )
    await api.patch(api.path("configmaps", "held"), {"metadata": {"finalizers": None}})


async def test_empty_namespace_is_deleted(api: Api) -> None:
    await api.delete(f"/api/v1/namespaces/{api.namespace}")
    await api.wait_gone(f"/api/v1/namespaces/{api.namespace}")


@pytest.mark.parametrize("name", ["default", "kube-system"])
async def test_system_namespace_cannot_be_deleted(api: Api, name: str) -> None:
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    assert api.failure_text(answer) == (
        f'403 Forbidden: namespaces "{name}" is forbidden: this namespace may not be deleted'
    )
