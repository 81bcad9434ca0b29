from tests.local.apiserver.raw_client import RawClient, config_map, pod
from tests.local.apiserver.storage.garbage import settled

NAMESPACES = "/api/v1/namespaces"


async def test_cluster_starts_with_its_namespaces(api: RawClient) -> None:
    assert (await api.get(NAMESPACES)).names == ["default", "kube-system"]


async def test_new_namespace_is_active_with_label_and_finalizer(api: RawClient) -> None:
    created = await api.create(NAMESPACES, {"metadata": {"name": "team"}})
    assert created["status"] == {"phase": "Active"}
    assert created["spec"] == {"finalizers": ["kubernetes"]}
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


async def test_each_namespace_gets_a_default_service_account(api: RawClient) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "team"}})
    await settled(api)
    for name in ("default", "team"):
        path = f"{NAMESPACES}/{name}/serviceaccounts/default"
        assert (await api.get(path)).code == 200


async def test_update_cannot_remove_a_namespaces_finalizer(api: RawClient) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "team"}})
    answer = await api.put(f"{NAMESPACES}/team", {"metadata": {"name": "team"}})
    assert answer.body["spec"] == {"finalizers": ["kubernetes"]}


async def test_deleted_namespace_deletes_its_contents(api: RawClient) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "team"}})
    await api.create(f"{NAMESPACES}/team/configmaps", config_map("a"))
    answer = await api.delete(f"{NAMESPACES}/team")
    assert answer.body["status"]["phase"] == "Terminating"
    await api.collect_garbage(f"{NAMESPACES}/team")
    assert (await api.get(f"{NAMESPACES}/team/configmaps")).names == []


async def test_terminating_namespace_waits_for_pods_and_rejects_new_objects(
    api: RawClient,
) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "team"}})
    pods = f"{NAMESPACES}/team/pods"
    await api.create(pods, pod("p", node="n"))
    await api.delete(f"{NAMESPACES}/team")
    await settled(api)
    assert (await api.get(f"{pods}/p")).body["metadata"]["deletionTimestamp"]

    answer = await api.post(pods, pod("q"))
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == (
        'pods "q" is forbidden: unable to create new content in namespace team because it is '
        "being terminated"
    )
    assert answer.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace team is being terminated",
            "field": "metadata.namespace",
        }
    ]

    await api.delete(f"{pods}/p", gracePeriodSeconds=0)
    await api.collect_garbage(f"{NAMESPACES}/team")


async def test_system_namespaces_cannot_be_deleted(api: RawClient) -> None:
    answer = await api.delete(f"{NAMESPACES}/default")
    assert answer.code == 403
    assert answer.body["message"] == (
        'namespaces "default" is forbidden: this namespace may not be deleted'
    )
