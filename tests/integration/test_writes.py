"""A controller that has nothing to do writes nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.builders import bare_job, kind_of, mxjob
from tests.support.fates import RUNS_ON, Evicted, Fate
from tests.support.world import World, world

JSON = dict[str, Any]
JOBS = [
    pytest.param(mxjob(), id="kubeflow.org"),
    pytest.param(mxjob(group="fioravanzo.org"), id="fioravanzo.org"),
    pytest.param(bare_job(), id="mpba.fbk.eu"),
]
STEADY: Mapping[str, Sequence[Fate]] = {
    "scheduler-0": [RUNS_ON],
    "worker-0": [RUNS_ON],
    "worker-1": [RUNS_ON],
}
compacted = pytest.mark.looptime(noop_cycles=8)


async def running(cluster: World, manifest: JSON) -> None:
    await cluster.submit(manifest, STEADY)
    await cluster.until(lambda: cluster.status().get("phase") == "Running")


@compacted
@pytest.mark.parametrize("manifest", JOBS)
async def test_running_job_costs_no_writes(manifest: JSON) -> None:
    async with world() as cluster:
        cluster.start()
        await running(cluster, manifest)
        await cluster.settled()
        revision, writes = cluster.server.storage.revision, cluster.history.writes()
        await asyncio.sleep(120)
        assert cluster.history.writes() == writes
        assert cluster.server.storage.revision == revision


@pytest.mark.soak
@pytest.mark.timeout(90)
async def test_running_job_costs_no_writes_in_half_a_minute_of_real_time() -> None:
    async with world() as cluster:
        cluster.start()
        await running(cluster, mxjob())
        await asyncio.sleep(5)
        writes = cluster.history.writes()
        await asyncio.sleep(30)
        assert cluster.history.writes() == writes


@compacted
@pytest.mark.parametrize("manifest", JOBS)
async def test_reconciling_again_writes_nothing(manifest: JSON) -> None:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    async with world() as cluster:
        controller = cluster.start()
        await running(cluster, manifest)
        await cluster.settled()
        writes = cluster.history.writes()
        for _ in range(3):
            controller.reconcile(kind)
            await asyncio.sleep(2)
        assert cluster.history.writes() == writes


@compacted
async def test_new_controller_finds_nothing_to_write() -> None:
    async with world() as cluster:
        cluster.start()
        await running(cluster, mxjob())
        await cluster.settled()
        await cluster.kill_all()
        writes = cluster.history.writes()
        cluster.start()
        await asyncio.sleep(60)
        assert cluster.history.writes() == writes


@compacted
async def test_small_job_costs_one_write_a_child_and_few_for_its_status() -> None:
    async with world() as cluster:
        cluster.start()
        await cluster.submit(mxjob(cleanupPodPolicy="None"), {})
        await cluster.ended()
        await cluster.settled()
        writes = cluster.history.writes()
        assert writes["create", "pods"] == 4
        assert writes["create", "services"] == 1
        assert writes["patch", "mxjobs/status.kubeflow.org"] <= 5
        assert writes["patch", "mxjobs.kubeflow.org"] == 1


@compacted
async def test_replica_that_waits_for_its_turn_costs_no_writes() -> None:
    manifest = mxjob()
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    async with world() as cluster:
        cluster.start()
        lost: Mapping[str, Sequence[Fate]] = {
            **STEADY,
            "worker-0": [Evicted(), Evicted(), Evicted(), RUNS_ON],
        }
        await cluster.submit(manifest, lost)
        await cluster.until(
            lambda: cluster.status().get("restarts", {}).get("worker-0", {}).get("tries") == 3
        )
        await asyncio.sleep(5)
        writes = cluster.history.writes()
        await asyncio.sleep(30)
        assert cluster.history.writes() == writes
