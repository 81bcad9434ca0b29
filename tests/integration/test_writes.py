"""A controller with nothing to do writes nothing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.kube.flowcontrol.write_limiter import WriteLimiter
from tests.builders import bare_job, kind_of, mxjob
from tests.integration.kubeflow import forever, job_of, only
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.harness import start_cluster as embedded
from tests.support.outcomes import KEEPS_RUNNING, Evicted, Outcome

JOBS = [
    pytest.param(mxjob(), id="kubeflow.org"),
    pytest.param(mxjob(group="fioravanzo.org"), id="fioravanzo.org"),
    pytest.param(bare_job(), id="mpba.fbk.eu"),
]
STEADY: Mapping[str, Sequence[Outcome]] = {
    "scheduler-0": [KEEPS_RUNNING],
    "worker-0": [KEEPS_RUNNING],
    "worker-1": [KEEPS_RUNNING],
}


async def running(cluster: ClusterHarness, manifest: JSON) -> None:
    await cluster.submit(manifest, STEADY)
    await cluster.until(lambda: cluster.status().get("phase") == "Running")


@pytest.mark.parametrize("manifest", JOBS)
async def test_running_job_causes_no_writes(manifest: JSON, start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster, manifest)
        await cluster.settled()
        job, writes = cluster.job(), cluster.history.writes()
        await cluster.advance(120)
        assert cluster.history.writes() == writes
        assert cluster.job() == job


@pytest.mark.soak
@pytest.mark.timeout(90)
async def test_running_job_causes_no_writes_in_half_a_minute_of_real_time() -> None:
    async with embedded() as cluster:
        cluster.start()
        await running(cluster, mxjob())
        await cluster.advance(5)
        writes = cluster.history.writes()
        await cluster.advance(30)
        assert cluster.history.writes() == writes


@pytest.mark.parametrize("manifest", JOBS)
async def test_repeated_reconcile_writes_nothing(
    manifest: JSON, start_cluster: StartCluster
) -> None:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    async with start_cluster() as cluster:
        controller = cluster.start()
        await running(cluster, manifest)
        await cluster.settled()
        writes = cluster.history.writes()
        for _ in range(3):
            controller.reconcile(kind)
            await cluster.advance(2)
        assert cluster.history.writes() == writes


async def test_restarted_controller_writes_nothing(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await running(cluster, mxjob())
        await cluster.settled()
        await cluster.kill_all()
        writes = cluster.history.writes()
        cluster.start()
        await cluster.advance(60)
        assert cluster.history.writes() == writes


@pytest.mark.embedded_only("a busy machine spreads the ends, and each second may write counts")
async def test_small_job_takes_one_write_per_child_and_few_status_writes(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mxjob(cleanupPodPolicy="None"), {})
        await cluster.ended()
        await cluster.settled()
        writes = cluster.history.writes()
        assert writes["create", "pods"] == 4
        assert writes["create", "services"] == 1
        assert writes["patch", "mxjobs/status.kubeflow.org"] <= 5
        assert writes["patch", "mxjobs.kubeflow.org"] == 1


@pytest.mark.embedded_only("it waits for longer than a real test may")
async def test_replica_waiting_for_its_backoff_causes_no_writes(
    start_cluster: StartCluster,
) -> None:
    manifest = mxjob()
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    async with start_cluster() as cluster:
        cluster.start()
        lost: Mapping[str, Sequence[Outcome]] = {
            **STEADY,
            "worker-0": [Evicted(), Evicted(), Evicted(), KEEPS_RUNNING],
        }
        await cluster.submit(manifest, lost)
        await cluster.until(
            lambda: (
                cluster.status().get("restarts", {}).get("worker-0", {}).get("consecutiveEnds") == 3
            )
        )
        await cluster.advance(5)
        writes = cluster.history.writes()
        await cluster.advance(30)
        assert cluster.history.writes() == writes


@asynccontextmanager
async def running_without_writes(
    start_cluster: StartCluster,
) -> AsyncIterator[tuple[ClusterHarness, WriteLimiter, AsyncExitStack]]:
    """Run a job, and hold the slots of all writes; in the end two of its workers have succeeded."""
    manifest = job_of("PyTorchJob", {"Master": 1, "Worker": 2})
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        limiter = cluster.start().manager.client.write_limiter
        await cluster.submit(manifest, forever("master-0", "worker-0", "worker-1"))
        await cluster.until(lambda: succeeded(cluster) == 0 and active(cluster) == 2)
        await cluster.settled()
        async with AsyncExitStack() as held:
            for _ in range(limiter.limit):
                await held.enter_async_context(limiter.slot())
            for name in ("linear-worker-0", "linear-worker-1"):
                ended = {"status": {"phase": "Succeeded"}}
                await cluster.user.patch(PODS, cluster.key(name), ended, subresource="status")
                await cluster.advance(2)
            assert limiter.waiting_count == 1
            yield cluster, limiter, held
        await cluster.until(lambda: succeeded(cluster) == 2)


@pytest.mark.embedded_only("it holds up the writes of the controller")
async def test_status_that_waited_is_written_once_with_what_has_happened_since(
    start_cluster: StartCluster,
) -> None:
    patches = ("patch", "pytorchjobs/status.kubeflow.org")
    async with running_without_writes(start_cluster) as (cluster, _, held):
        before = cluster.history.writes()[patches]
        await held.aclose()
        await cluster.settled()
        assert cluster.history.writes()[patches] == before + 1


@pytest.mark.embedded_only("it holds up the writes of the controller")
async def test_status_that_is_planned_again_keeps_its_turn(start_cluster: StartCluster) -> None:
    async with running_without_writes(start_cluster) as (cluster, limiter, held):
        loop = asyncio.get_running_loop()

        async def write_for_long() -> None:
            async with limiter.slot():
                await asyncio.sleep(10)

        async with asyncio.TaskGroup() as group:
            for _ in range(5 * limiter.limit):
                group.create_task(write_for_long())
            await cluster.advance(1)
            released = loop.time()
            await held.aclose()
            await cluster.until(lambda: succeeded(cluster) == 2)
            # When the first of the others are done; the last are after 50 s.
            assert loop.time() - released < 15


def active(cluster: ClusterHarness) -> int:
    return _workers(cluster).get("active", 0)


def succeeded(cluster: ClusterHarness) -> int:
    return _workers(cluster).get("succeeded", 0)


def _workers(cluster: ClusterHarness) -> Mapping[str, int]:
    counts: Mapping[str, int] = cluster.status().get("replicaStatuses", {}).get("Worker", {})
    return counts
