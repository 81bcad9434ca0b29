"""The way back to another operator: no scheduling gate of dlctl's remains."""

import pytest

from dlctl.api.meta import PODS
from dlctl.api.objects.pods import WORKERS_RUNNING_GATE
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.reconcilers.children.scheduling_gates import ungate_all
from tests.integration.mpi_v1_jobs import HELD, RUNS, gates, mpi_job, phase, replicas
from tests.support.harness import ClusterHarness, StartCluster

LAUNCHER = "linear-launcher"


async def left_waiting(cluster: ClusterHarness, *own_gates: str) -> None:
    """Let dlctl create a job with a gated launcher, and stop it."""
    job = mpi_job()
    replicas(job, "Worker")["template"]["spec"].update(HELD)
    if own_gates:
        held = {"schedulingGates": [{"name": gate} for gate in own_gates]}
        replicas(job, "Launcher")["template"]["spec"].update(held)
    controller = cluster.start()
    await cluster.submit(job, RUNS)
    await cluster.until(lambda: len(cluster.pods()) == 3)
    await cluster.settled()
    await controller.stop()
    assert WORKERS_RUNNING_GATE in gates(cluster, LAUNCHER)


async def test_gated_launcher_starts_after_dlctl_release(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await left_waiting(cluster)
        assert await ungate_all(cluster.user, cluster.namespace) == [cluster.key(LAUNCHER)]
        await cluster.until(lambda: phase(cluster, LAUNCHER) == "Running")
        assert await ungate_all(cluster.user, cluster.namespace) == []


async def test_release_keeps_foreign_gates(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await left_waiting(cluster, "example.com/mine")
        await ungate_all(cluster.user, cluster.namespace)
        await cluster.sync()
        assert gates(cluster, LAUNCHER) == ["example.com/mine"]
        assert gates(cluster, "linear-worker-0") == ["example.com/held"]


@pytest.mark.parametrize("gone", [False, True])
async def test_launcher_changed_meanwhile_is_released(
    gone: bool, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        await left_waiting(cluster)
        conflict = status.conflict(PODS, LAUNCHER, "it has changed")
        cluster.server.faults.add(
            Fault(verb="patch", resource="pods", name=LAUNCHER, status=conflict)
        )
        if gone:
            cluster.server.faults.add(
                Fault(
                    verb="get",
                    resource="pods",
                    name=LAUNCHER,
                    status=status.not_found(PODS, LAUNCHER),
                )
            )
        released = await ungate_all(cluster.user, cluster.namespace)
        assert released == ([] if gone else [cluster.key(LAUNCHER)])
