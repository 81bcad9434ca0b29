"""The start of elastic jobs: workers that fail before it, and gangs."""

from typing import Final

import pytest

from dlctl.api.meta import PODS
from dlctl.api.objects.pod_groups import VOLCANO_POD_GROUPS
from dlctl.options import Options
from tests.integration.replicas import created
from tests.support.elastic_harness import JOBS, ElasticHarness, start_elastic_cluster
from tests.support.pod_groups import admit, kinds_with_gangs, serve_pod_groups

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

LAUNCHER: Final = "linear-launcher"


@pytest.mark.parametrize(("policy", "left"), [("Never", [0]), ("OnFailure", [0, 1])])
async def test_worker_failure_before_the_launcher_starts_does_not_block_the_job(
    policy: str, left: list[int]
) -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        stage.cluster.node.unready.update(("linear-worker-0", "linear-worker-1"))
        await stage.submit(worker={"replicas": 2, "restartPolicy": policy})
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        stage.cluster.node.unready.clear()
        await stage.end("linear-worker-1", 1)
        await stage.cluster.advance(5)
        await stage.become_ready("linear-worker-0")
        await stage.until_running()
        assert stage.listed() == left


async def test_job_with_too_few_workers_to_start_fails_with_their_cause() -> None:
    async with start_elastic_cluster() as stage:
        stage.cluster.node.unready.add("linear-worker-0")
        await stage.submit(worker={"replicas": 2, "minReplicas": 2})
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert "worker-1" in stage.cluster.condition("Failed")


async def test_gang_counts_the_workers_and_puts_the_launcher_into_its_queue() -> None:
    async with start_elastic_cluster() as stage:
        await stage.cluster.kill_all()
        await serve_pod_groups(stage.cluster.user, VOLCANO_POD_GROUPS)
        stage.cluster.start(
            kinds=[kind for kind in kinds_with_gangs("volcano") if kind.resource == JOBS]
        )
        await stage.submit()
        await stage.cluster.until(lambda: stage.cluster.objects(VOLCANO_POD_GROUPS))
        await stage.cluster.settled()
        assert stage.left() == ["linear-worker-0", "linear-worker-1"]
        assert stage.cluster.pods() == []
        await admit(stage.cluster)
        await stage.until_running()
        (group,) = stage.cluster.objects(VOLCANO_POD_GROUPS)
        assert group["spec"]["minMember"] == 2
        ganged_pods = [pod for pod in stage.cluster.pods() if joins(stage, pod)]
        assert ganged_pods == [LAUNCHER, "linear-worker-0", "linear-worker-1"]


def joins(stage: ElasticHarness, pod: str) -> bool:
    """Return whether a pod belongs to a gang."""
    annotations = stage.pod(pod)["metadata"].get("annotations") or {}
    return "scheduling.k8s.io/group-name" in annotations


async def test_worker_that_others_delete_waits_for_its_next_pod_also_as_a_new_member() -> None:
    async with start_elastic_cluster() as stage:
        cluster = stage.cluster
        cluster.node.unready.update(("linear-worker-0", "linear-worker-1"))
        await stage.submit(worker={"replicas": 2})
        for count in (1, 2, 3):
            await cluster.until(lambda: stage.workers() == [0, 1])
            assert created(cluster, "worker-1") == count
            await cluster.user.delete(PODS, cluster.key("linear-worker-1"), grace_period_s=0)
        for replicas in (1, 2):
            await stage.edit({"spec": {"etReplicaSpecs": {"worker": {"replicas": replicas}}}})
            await cluster.advance(1)
        assert stage.workers() == [0]
        await cluster.advance(10)
        assert stage.workers() == [0, 1]
