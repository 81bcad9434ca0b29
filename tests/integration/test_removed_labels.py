"""Webhooks and policies that remove the label by which dlctl's stores know its children."""

from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY_LABEL, PODS, SERVICES, Resource
from tests.integration.kubeflow import job_of, only
from tests.support.elastic_harness import start_elastic_cluster
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.webhooks import add_webhook

pytestmark = pytest.mark.embedded_only("it changes what the server stores")
KINDS: Final = only("PyTorchJob")


def remove_label(obj: JSON) -> None:
    (obj["metadata"].get("labels") or {}).pop(MANAGED_BY_LABEL, None)


def requests(cluster: ClusterHarness, *verbs: str) -> int:
    return sum(
        count
        for entry, count in cluster.server.audit.items()
        if entry.user_agent.startswith("dlctl") and entry.verb in verbs
    )


@pytest.mark.parametrize("resource", [PODS, SERVICES], ids=["pod", "service"])
async def test_job_says_so_if_its_children_lose_their_label(
    resource: Resource, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=KINDS) as cluster:
        add_webhook(cluster, resource, remove_label)
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 2}))
        await cluster.advance(10)
        kind = resource.kind.lower()
        assert cluster.condition("Waiting") == (
            f"{kind} linear-master-0 lacks the label dlctl.dev/managed-by=dlctl: a webhook or "
            "policy removes it; it is tried again"
        )
        before = requests(cluster, "create", "patch")
        await cluster.advance(600)
        # Every two minutes: a request to create each, and one to label it.
        assert requests(cluster, "create", "patch") - before <= 6 * 2 * 3


async def test_label_that_is_removed_from_new_pods_alone_is_added_at_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=KINDS) as cluster:
        add_webhook(cluster, PODS, remove_label, updates=False)
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 2}))
        await cluster.advance(10)
        assert cluster.condition("Running")


@pytest.mark.looptime(noop_cycles=8)
async def test_label_of_an_elastic_worker_that_cannot_be_restored_causes_few_requests() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        add_webhook(stage.cluster, PODS, remove_label)
        key = stage.cluster.key("linear-worker-0")
        await stage.cluster.user.patch(PODS, key, {"metadata": {"labels": {"touched": "yes"}}})
        before = requests(stage.cluster, "get", "create", "patch")
        await stage.cluster.advance(60)
        assert requests(stage.cluster, "get", "create", "patch") - before < 100
