"""Pods on a lost node: they never terminate, and keep their names."""

import asyncio

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.options import Options
from tests.builders import kind_of, mxjob
from tests.support.fake_kubelet import NODE_NAME
from tests.support.harness import NAMESPACE, ClusterHarness, start_cluster
from tests.support.outcomes import DONE, KEEPS_RUNNING

pytestmark = pytest.mark.looptime(noop_cycles=8)
GRACE_S = 30
AFTER_S = 60
IMPATIENT = Options(force_delete_after_s=AFTER_S)
# The runtime ID is set, so that the pods' names are known.
JOB = mxjob(RuntimeId="abcd", cleanupPodPolicy="None")
LOST = "linear-worker-abcd-1"
KEY = ObjectKey(NAMESPACE, LOST)


async def start(cluster: ClusterHarness) -> str:
    """Run a job, and return the UID of the pod that will be lost."""
    cluster.start()
    await cluster.submit(JOB, {"scheduler-0": [KEEPS_RUNNING], "worker-1": [KEEPS_RUNNING, DONE]})
    await cluster.until(lambda: runs(cluster))
    return uid(cluster)


async def lose_node(cluster: ClusterHarness) -> None:
    """Disconnect the pod's node, and evict its pod as the control plane does."""
    conflict = status.conflict(PODS, LOST, "the node is not there")
    cluster.server.faults.add(
        Fault(
            verb="write",
            resource="pods",
            name=LOST,
            user_agent="kubelet",
            status=conflict,
            times=None,
        )
    )
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    condition = {"status": {"conditions": [target]}}
    await cluster.user.patch(PODS, KEY, condition, subresource="status")
    await cluster.user.delete(PODS, KEY, grace_period_s=GRACE_S)
    # By then the node has stopped; it does not run the next pod of this name.
    await asyncio.sleep(1)


def pods(cluster: ClusterHarness) -> list[JSON]:
    return [pod for pod in cluster.objects(PODS) if pod["metadata"]["name"] == LOST]


def uid(cluster: ClusterHarness) -> str:
    return "".join(pod["metadata"]["uid"] for pod in pods(cluster))


def runs(cluster: ClusterHarness) -> bool:
    return any((pod.get("status") or {}).get("phase") == "Running" for pod in pods(cluster))


def is_replaced(cluster: ClusterHarness, lost: str) -> bool:
    return uid(cluster) not in ("", lost)


def deletions(cluster: ClusterHarness) -> int:
    return cluster.history.writes()["delete", "pods"]


async def test_pod_on_a_lost_node_is_replaced_after_the_timeout() -> None:
    async with start_cluster(options=IMPATIENT) as cluster:
        lost = await start(cluster)
        asked = cluster.clock.monotonic()
        await lose_node(cluster)
        cluster.server.faults.clear()
        await cluster.until(lambda: is_replaced(cluster, lost))
        waited_s = cluster.clock.monotonic() - asked
        assert GRACE_S + AFTER_S - 1 <= waited_s <= GRACE_S + AFTER_S + 2

        await cluster.settled()
        told = cluster.events()["PodForceDeleted"]
        assert LOST in told
        assert NODE_NAME in told
        assert "may still run" in told
        assert deletions(cluster) == 1
        # The new pod has ended as scripted; the lost one is no failure.
        assert "restarts" not in cluster.status()
        assert not cluster.history.violations


async def test_pod_on_a_lost_node_is_not_deleted_again_before_the_timeout() -> None:
    async with start_cluster(options=IMPATIENT) as cluster:
        await start(cluster)
        await cluster.settled()
        await lose_node(cluster)
        await asyncio.sleep(10)
        before = cluster.server.audit.copy()
        await asyncio.sleep(GRACE_S + AFTER_S - 20)
        requests = cluster.server.audit - before
        made = [one for one in requests.elements() if one.user_agent == "dlctl"]
        made = [one for one in made if one.verb != "watch"]
        assert [(one.verb, one.subresource) for one in made] == [("patch", "status")]
        assert "still being deleted on node" in cluster.condition("Waiting")


async def test_pod_on_a_lost_node_is_kept_without_the_setting() -> None:
    async with start_cluster() as cluster:
        lost = await start(cluster)
        await lose_node(cluster)
        await asyncio.sleep(1800)
        assert uid(cluster) == lost
        assert deletions(cluster) == 0


async def test_node_back_in_time_prevents_force_deletion() -> None:
    async with start_cluster(options=IMPATIENT) as cluster:
        lost = await start(cluster)
        await lose_node(cluster)
        await asyncio.sleep(GRACE_S + AFTER_S / 2)
        cluster.server.faults.clear()
        await cluster.user.delete(PODS, KEY, uid=UID(lost), grace_period_s=0)
        await cluster.until(lambda: is_replaced(cluster, lost))
        await cluster.settled()
        assert deletions(cluster) == 0
        assert "PodForceDeleted" not in cluster.events()


async def test_pod_kept_by_finalizers_is_force_deleted_only_once() -> None:
    async with start_cluster(options=IMPATIENT) as cluster:
        lost = await start(cluster)
        await cluster.user.patch(PODS, KEY, {"metadata": {"finalizers": ["a.b/c"]}})
        await lose_node(cluster)
        await asyncio.sleep(10 * AFTER_S)
        assert deletions(cluster) == 1
        assert uid(cluster) == lost

        cluster.server.faults.clear()
        await cluster.user.patch(PODS, KEY, {"metadata": {"finalizers": None}})
        await cluster.until(lambda: runs(cluster))
        assert is_replaced(cluster, lost)
        assert not cluster.history.violations


async def test_rejected_force_deletion_is_retried_with_backoff() -> None:
    refusal = status.internal_error("the storage is ill")
    fault = Fault(verb="delete", resource="pods", user_agent="dlctl", status=refusal, times=None)
    async with start_cluster(options=IMPATIENT) as cluster:
        lost = await start(cluster)
        await lose_node(cluster)
        cluster.server.faults.clear()
        cluster.server.faults.add(fault)
        await asyncio.sleep(GRACE_S + AFTER_S + 60)
        assert 3 <= deletions(cluster) <= 20
        assert "PodForceDeleted" not in cluster.events()

        cluster.server.faults.clear()
        await cluster.until(lambda: is_replaced(cluster, lost))


async def test_pod_of_a_finished_job_is_force_deleted_too() -> None:
    async with start_cluster(options=IMPATIENT) as cluster:
        cluster.start()
        await cluster.submit(JOB, {"worker-1": [KEEPS_RUNNING]})
        await cluster.until(lambda: runs(cluster))
        await lose_node(cluster)
        await cluster.ended()
        assert LOST in cluster.pods()
        await cluster.until(lambda: LOST not in cluster.pods())
        await cluster.settled()
        assert LOST not in cluster.pods()
        assert cluster.status()["state"] == "Succeeded"


async def test_pod_of_a_deleted_job_is_left_to_the_garbage_collector() -> None:
    async with start_cluster(options=IMPATIENT) as cluster:
        await start(cluster)
        await lose_node(cluster)
        await cluster.user.delete(kind_of().resource, ObjectKey(NAMESPACE, "linear"))
        await asyncio.sleep(10 * AFTER_S)
        assert LOST in cluster.pods()
        assert deletions(cluster) == 0
