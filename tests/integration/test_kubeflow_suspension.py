"""Suspended and resumed jobs of Kubeflow's kinds: conditions in training-operator's order.

``kubectl get`` and Kueue read them, so each step is asserted, not just the outcome.
"""

import pytest

from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.integration.kubeflow import (
    KINDS,
    change,
    chief_of,
    conditions,
    forever,
    job_of,
    message,
    only,
    running,
)
from tests.integration.quick_deletions import finish_and_delete_at_once
from tests.integration.replicas import created
from tests.support.harness import ClusterHarness, StartCluster

# dlctl's own, and first, so that the last one is training-operator's.
WAITING = ("Waiting", "True", "Suspended")
FOREVER = {**forever("worker-0"), **forever()}


async def run_two_workers(cluster: ClusterHarness) -> None:
    """Start a controller and a job whose workers run until they are stopped."""
    cluster.start()
    job = job_of("TFJob", {"Worker": 2}, policy="Never")
    await cluster.submit(job, forever("worker-0", "worker-1"))
    await running(cluster)


async def is_suspended(cluster: ClusterHarness) -> None:
    await cluster.until(lambda: bool(cluster.condition("Suspended")) and not cluster.pods())
    await cluster.settled()


@pytest.mark.parametrize("kind", KINDS)
async def test_job_is_suspended_and_resumed(kind: str, start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        await cluster.submit(job_of(kind, {"Worker": 1, **chief_of(kind)}), FOREVER)
        await running(cluster)
        await cluster.settled()
        created, runs = ("Created", "True", f"{kind}Created"), ("Running", "True", f"{kind}Running")
        assert conditions(cluster) == [created, runs]
        begun = cluster.status()["startTime"]

        await change(cluster, kind, {"runPolicy": {"suspend": True}})
        await is_suspended(cluster)
        suspended = f"{kind}Suspended"
        assert conditions(cluster) == [
            WAITING,
            created,
            ("Running", "False", suspended),
            ("Suspended", "True", suspended),
        ]
        assert message(cluster, "Suspended") == f"{kind} linear is suspended."
        assert cluster.services() == []
        assert cluster.status()["startTime"] == begun
        assert not any("active" in r for r in cluster.status()["replicaStatuses"].values())

        await change(cluster, kind, {"runPolicy": {"suspend": False}})
        await running(cluster)
        await cluster.settled()
        assert conditions(cluster) == [created, ("Suspended", "False", f"{kind}Resumed"), runs]
        assert message(cluster, "Suspended") == f"{kind} linear is resumed."
        assert cluster.status()["startTime"] > begun
        assert len(cluster.pods()) == 1 + len(chief_of(kind))
        assert len(cluster.services()) == (0 if kind == "MPIJob" else len(cluster.pods()))
        assert {suspended, f"{kind}Resumed"} <= set(cluster.events())


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
async def test_job_created_suspended_starts_when_it_is_resumed(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        await cluster.submit(job_of(kind, {"Worker": 2}, run_policy={"suspend": True}), {})
        await is_suspended(cluster)
        created = ("Created", "True", f"{kind}Created")
        suspended = ("Suspended", "True", f"{kind}Suspended")
        assert conditions(cluster) == [WAITING, created, suspended]
        assert "startTime" not in cluster.status()
        assert not cluster.history.created

        await change(cluster, kind, {"runPolicy": {"suspend": False}})
        status = await cluster.ended()
        assert conditions(cluster) == [
            created,
            ("Suspended", "False", f"{kind}Resumed"),
            ("Running", "False", f"{kind}Running"),
            ("Succeeded", "True", f"{kind}Succeeded"),
        ]
        assert status["startTime"] <= status["completionTime"]


async def test_job_resumed_at_once_waits_for_its_terminating_pods(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        await run_two_workers(cluster)
        await change(cluster, "TFJob", {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: bool(cluster.condition("Suspended")))
        await change(cluster, "TFJob", {"runPolicy": {"suspend": False}})
        await running(cluster)
        await cluster.settled()
        assert not cluster.condition("Failed")
        assert len(cluster.pods()) == 2
        assert not cluster.history.violations


@pytest.mark.embedded_only("it slows down the server")
async def test_replica_that_completes_while_its_job_is_suspended_runs_again(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        await run_two_workers(cluster)
        await cluster.settled()
        slow = Fault(verb="delete", resource="pods", user_agent="dlctl", delay_s=1, times=None)
        cluster.server.faults.add(slow)
        await change(cluster, "TFJob", {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: bool(cluster.condition("Suspended")))
        await finish_and_delete_at_once(cluster, "worker-1")
        # The status of the resumed job is written, and its pods only at the next attempt.
        failed = StatusError(500, "InternalError", "failed")
        cluster.server.faults.add(Fault(verb="create", resource="pods", status=failed))
        await change(cluster, "TFJob", {"runPolicy": {"suspend": False}})
        await cluster.until(lambda: created(cluster, "worker-0") == 2)
        await cluster.settled()
        assert created(cluster, "worker-1") == 2
        assert len(cluster.pods()) == 2


@pytest.mark.embedded_only("the deadline is longer than a test may take")
async def test_active_deadline_starts_when_the_job_is_resumed(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Worker": 1}, run_policy={"activeDeadlineSeconds": 600})
        await cluster.submit(job, FOREVER)
        await running(cluster)
        await change(cluster, "PyTorchJob", {"runPolicy": {"suspend": True}})
        await is_suspended(cluster)
        await cluster.advance(3600)
        assert not cluster.condition("Failed")
        await change(cluster, "PyTorchJob", {"runPolicy": {"suspend": False}})
        await running(cluster)
        await cluster.advance(500)
        assert cluster.condition("Running")
        await cluster.advance(150)
        assert "longer than specified deadline" in cluster.condition("Failed")
