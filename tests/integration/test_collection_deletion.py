"""Children that are deleted together are deleted by one request, which hits nothing else."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES, Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING

SIZE: Final = 20
KIND: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
TOGETHER: Final = {("deletecollection", "pods"): 1, ("deletecollection", "services"): 1}
SINGLY: Final = {("delete", "pods"): SIZE, ("delete", "services"): SIZE}
NOT_IN_ROLE: Final = 'User "dlctl" cannot deletecollection resource "pods" in API group ""'


def job(name: str = "linear", policy: str = "All") -> JSON:
    manifest = training_job("PyTorchJob", name, Master=1, Worker=SIZE - 1)
    manifest["spec"]["runPolicy"] = {"cleanPodPolicy": policy}
    return manifest


def deletions(cluster: ClusterHarness) -> Mapping[tuple[str, str], int]:
    writes = cluster.history.writes()
    return {key: count for key, count in writes.items() if key[0].startswith("delete")}


async def run(cluster: ClusterHarness, manifest: JSON) -> None:
    """Run a job whose replicas do not end by themselves."""
    name = manifest["metadata"]["name"]
    outcomes = {f"worker-{index}": [KEEPS_RUNNING] for index in range(SIZE - 1)}
    await cluster.submit(manifest, {"master-0": [KEEPS_RUNNING], **outcomes})
    await cluster.until(partial(cluster.condition, "Running", name))
    await cluster.until(lambda: active(cluster, name) == SIZE)


def active(cluster: ClusterHarness, name: str = "linear") -> int:
    replicas = cluster.status(name).get("replicaStatuses") or {}
    return sum(replica.get("active", 0) for replica in replicas.values())


async def finish(cluster: ClusterHarness, name: str = "linear") -> None:
    master = next(p for p in cluster.objects(PODS) if p["metadata"]["name"] == f"{name}-master-0")
    await cluster.node.finish(master["metadata"]["uid"], 0)


async def suspend(cluster: ClusterHarness, *, suspended: bool = True) -> None:
    patch = {"spec": {"runPolicy": {"suspend": suspended}}}
    await cluster.user.patch(KIND.resource, cluster.key(), patch)


async def copy(cluster: ClusterHarness, resource: Resource) -> None:
    """Create an object of the user's own with the labels of a child."""
    child, spec = cluster.objects(resource)[-1], {"clusterIP": "None", "ports": [{"port": 80}]}
    if resource == PODS:
        spec = {"containers": [{"name": "mine", "image": "mine:1"}], "schedulerName": "nobody"}
    body = {"metadata": {"name": "copy", "labels": child["metadata"]["labels"]}, "spec": spec}
    await cluster.user.create(resource, cluster.namespace, body)
    await cluster.settled()


async def test_children_of_a_finished_job_are_deleted_by_two_requests(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await run(cluster, job())
        await finish(cluster)
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        await cluster.settled()
        assert deletions(cluster) == TOGETHER
        deleted = cluster.events()["SuccessfulDeletePod"]
        assert deleted.startswith("Deleted 20 pods: ")


async def test_pod_that_is_kept_is_excluded_from_the_request(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await run(cluster, job(policy="Running"))
        await finish(cluster)
        await cluster.ended()
        await cluster.until(lambda: cluster.pods() == cluster.services() == ["linear-master-0"])
        await cluster.settled()
        assert deletions(cluster) == TOGETHER


async def test_suspended_job_is_deleted_by_two_requests_and_resumed_in_full(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await run(cluster, job())
        await suspend(cluster)
        await cluster.until(lambda: cluster.condition("Suspended"))
        await suspend(cluster, suspended=False)
        await cluster.until(lambda: set(cluster.history.created.values()) == {2})
        await cluster.until(lambda: active(cluster) == SIZE)
        await cluster.settled()
        assert deletions(cluster) == TOGETHER
        assert not cluster.history.violations


async def test_objects_with_the_same_labels_survive(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await run(cluster, job())
        await copy(cluster, PODS)
        await copy(cluster, SERVICES)
        await finish(cluster)
        await cluster.ended()
        await cluster.until(lambda: cluster.pods() == cluster.services() == ["copy"])
        await cluster.settled()
        assert deletions(cluster) == SINGLY
        assert not any("deletionTimestamp" in p["metadata"] for p in cluster.objects(PODS))


async def test_role_without_the_verb_is_noticed_once(
    start_cluster: StartCluster, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = status.forbidden(PODS, "", NOT_IN_ROLE)
    fault = Fault(verb="deletecollection", user_agent="dlctl", status=refusal, times=None)
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.server.faults.add(fault)
        cluster.start()
        for name in ("first", "second"):
            await run(cluster, job(name))
            await finish(cluster, name)
            # No deletion is expected of the request that was refused.
            async with asyncio.timeout(60):
                await cluster.ended(name)
                await cluster.until(lambda: not cluster.pods() and not cluster.services())
        twice = {key: 2 * count for key, count in SINGLY.items()}
        assert deletions(cluster) == TOGETHER | twice
    assert caplog.text.count("deleting objects singly") == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": StatusError(409, "Conflict", "later")}, id="conflict"),
        pytest.param({"status": StatusError(500, "InternalError", "no")}, id="error"),
        pytest.param({"status": StatusError(410, "Expired", "too old")}, id="expired"),
        pytest.param({"reset": "before"}, id="request lost"),
        pytest.param({"reset": "after"}, id="response lost"),
        pytest.param({"delay_s": 15.0}, id="hang"),
    ],
)
async def test_failed_request_is_followed_by_single_deletions(
    fault: JSON, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await run(cluster, job())
        cluster.server.faults.add(
            Fault(verb="deletecollection", user_agent="dlctl", times=None, **fault)
        )
        await finish(cluster)
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        await cluster.settled()
        done = deletions(cluster)
        assert {key: done[key] for key in SINGLY} == SINGLY
        # The client sends a request once more if the connection breaks without a response.
        assert all(1 <= done[key] <= 2 for key in TOGETHER)


async def test_throttled_request_is_sent_again(start_cluster: StartCluster) -> None:
    refusal = StatusError(429, "TooManyRequests", "later")
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await run(cluster, job())
        cluster.server.faults.add(
            Fault(verb="deletecollection", resource="pods", status=refusal, times=2)
        )
        await finish(cluster)
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        assert deletions(cluster) == TOGETHER | {("deletecollection", "pods"): 3}
