from tests.local.apiserver.test_gc import settled
from tests.local.apiserver.wire import Wire, config_map, pod

NAMESPACES = "/api/v1/namespaces"


async def test_cluster_begins_with_its_namespaces(wire: Wire) -> None:
    assert (await wire.get(NAMESPACES)).names == ["default", "kube-system"]


async def test_new_namespace_is_active_labelled_and_held(wire: Wire) -> None:
    created = await wire.create(NAMESPACES, {"metadata": {"name": "team"}})
    assert created["status"] == {"phase": "Active"}
    assert created["spec"] == {"finalizers": ["kubernetes"]}
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


async def test_each_namespace_gets_a_default_service_account(wire: Wire) -> None:
    await wire.create(NAMESPACES, {"metadata": {"name": "team"}})
    await settled(wire)
    for name in ("default", "team"):
        path = f"{NAMESPACES}/{name}/serviceaccounts/default"
        assert (await wire.get(path)).code == 200


async def test_update_cannot_let_a_namespace_go(wire: Wire) -> None:
    await wire.create(NAMESPACES, {"metadata": {"name": "team"}})
    answer = await wire.put(f"{NAMESPACES}/team", {"metadata": {"name": "team"}})
    assert answer.body["spec"] == {"finalizers": ["kubernetes"]}


async def test_deleted_namespace_takes_its_contents_along(wire: Wire) -> None:
    await wire.create(NAMESPACES, {"metadata": {"name": "team"}})
    await wire.create(f"{NAMESPACES}/team/configmaps", config_map("a"))
    answer = await wire.delete(f"{NAMESPACES}/team")
    assert answer.body["status"]["phase"] == "Terminating"
    await wire.gone(f"{NAMESPACES}/team")
    assert (await wire.get(f"{NAMESPACES}/team/configmaps")).names == []


async def test_terminating_namespace_waits_for_graceful_pods_and_refuses_new_objects(
    wire: Wire,
) -> None:
    await wire.create(NAMESPACES, {"metadata": {"name": "team"}})
    pods = f"{NAMESPACES}/team/pods"
    await wire.create(pods, pod("p", node="n"))
    await wire.delete(f"{NAMESPACES}/team")
    await settled(wire)
    assert (await wire.get(f"{pods}/p")).body["metadata"]["deletionTimestamp"]

    answer = await wire.post(pods, pod("q"))
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

    await wire.delete(f"{pods}/p", gracePeriodSeconds=0)
    await wire.gone(f"{NAMESPACES}/team")


async def test_system_namespaces_may_not_be_deleted(wire: Wire) -> None:
    answer = await wire.delete(f"{NAMESPACES}/default")
    assert answer.code == 403
    assert answer.body["message"] == (
        'namespaces "default" is forbidden: this namespace may not be deleted'
    )
