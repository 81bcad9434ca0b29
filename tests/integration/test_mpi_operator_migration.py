"""Migration from mpi-operator v2, with jobs in every state.

Jobs are created as it leaves them: children without our label, statuses without ``dlctl``.
"""

from typing import Any

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, CONFIG_MAPS, MANAGED_BY_LABEL, PODS, SERVICES
from tests.builders import renderer_of
from tests.integration.mpi_jobs import (
    JOB,
    MPI,
    MPIJOBS,
    condition,
    counts,
    finish_launcher,
    is_true,
    launcher_job,
    pods,
    set_suspended,
)
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.mpi_operator import operator_children

MESSAGES = {
    "Created": "MPIJob {ns}/pi is created.",
    "Running": "MPIJob {ns}/pi is running.",
    "Suspended": "MPIJob suspended",
    "Succeeded": "MPIJob {ns}/pi successfully completed.",
    "Evicted": "1/2 workers are evicted",
}
RUNNING: JSON = {"Launcher": {"active": 1}, "Worker": {"active": 2}}
CHILDREN = (PODS, SERVICES, CONFIG_MAPS, BATCH_JOBS)


def timestamp(cluster: ClusterHarness) -> str:
    return cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


async def left_behind(cluster: ClusterHarness, manifest: JSON, *stated: str, **status: Any) -> None:
    """Create a job as mpi-operator leaves it, with these conditions, and wait for its pods."""
    await cluster.start_job_controller()
    job = await cluster.submit(manifest, {})
    for resource, child in operator_children(renderer_of(job)):
        await cluster.user.create(resource, cluster.namespace, child)
    now = timestamp(cluster)
    status["conditions"] = [
        {
            # An eviction makes a job Failed, and no longer Running, while it goes on.
            "type": "Failed" if type_ == "Evicted" else type_,
            "status": "False" if type_ == "Running" and "Evicted" in stated else "True",
            "reason": f"MPIJob{type_}",
            "message": MESSAGES[type_].format(ns=cluster.namespace),
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        for type_ in stated
    ]
    status.setdefault("startTime", now)
    await cluster.user.patch(MPIJOBS, cluster.key(JOB), {"status": status}, subresource="status")
    if not launcher_job(cluster)["spec"].get("suspend"):
        await cluster.until(lambda: _running(cluster) == 3)


def _running(cluster: ClusterHarness) -> int:
    return len(pods(cluster, "launcher", "Running")) + len(pods(cluster, "worker", "Running"))


def uids(cluster: ClusterHarness) -> set[str]:
    """Return the UIDs of the job's children."""
    owned = [cluster.owned(resource, cluster.job(JOB)) for resource in CHILDREN]
    return {child["metadata"]["uid"] for children in owned for child in children}


def unlabelled(cluster: ClusterHarness) -> list[str]:
    """Return the names of children without the label of dlctl."""
    owned = [cluster.owned(resource, cluster.job(JOB)) for resource in CHILDREN]
    children = [child for found in owned for child in found] + pods(cluster, "launcher")
    return [
        child["metadata"]["name"]
        for child in children
        if MANAGED_BY_LABEL not in (child["metadata"].get("labels") or {})
    ]


async def test_running_job_is_adopted_and_ends_undisturbed(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        manifest = mpi_job(policy={"cleanPodPolicy": "All"})
        await left_behind(cluster, manifest, "Created", "Running", replicaStatuses=RUNNING)
        children, status = uids(cluster), cluster.status(JOB)
        cluster.start()
        await cluster.until(lambda: not unlabelled(cluster))
        await cluster.until(lambda: cluster.phase(JOB) == "Running")
        await cluster.settled()
        assert uids(cluster) == children
        assert cluster.status(JOB)["dlctl"]["version"] == "v2beta1"
        assert {n: v for n, v in cluster.status(JOB).items() if n != "dlctl"} == status
        await finish_launcher(cluster)
        await cluster.until(lambda: is_true(cluster, "Succeeded") and not pods(cluster, "worker"))
        assert counts(cluster)["Launcher"] == {"succeeded": 1}


async def test_job_with_an_evicted_worker_goes_on(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        manifest = mpi_job(policy={"cleanPodPolicy": "Running"})
        await left_behind(cluster, manifest, "Created", "Running", "Evicted")
        evicted, kept = pods(cluster, "worker")
        await cluster.node.evict(evicted["metadata"]["uid"])
        launcher = pods(cluster, "launcher")
        cluster.start()
        await cluster.until(lambda: is_true(cluster, "Running") and not is_true(cluster, "Failed"))
        assert [p["metadata"]["uid"] for p in pods(cluster, "launcher", "Running")] == [
            p["metadata"]["uid"] for p in launcher
        ]
        workers = {p["metadata"]["uid"] for p in pods(cluster, "worker", "Running")}
        assert len(workers) == 2
        assert kept["metadata"]["uid"] in workers
        await finish_launcher(cluster)
        await cluster.until(lambda: is_true(cluster, "Succeeded") and not pods(cluster, "worker"))
        assert not is_true(cluster, "Failed")


async def retry_adopted_launcher(cluster: ClusterHarness, manifest: JSON) -> None:
    """Take a running job over, and let its launcher fail once."""
    manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    await left_behind(cluster, manifest, "Created", "Running", replicaStatuses=RUNNING)
    cluster.start()
    await cluster.until(lambda: not unlabelled(cluster))
    await finish_launcher(cluster, 1)
    await cluster.until(lambda: counts(cluster).get("Launcher") == {"active": 1, "failed": 1})


async def test_retries_of_an_adopted_launcher_are_counted(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await retry_adopted_launcher(cluster, mpi_job())
        await finish_launcher(cluster)
        await cluster.until(lambda: is_true(cluster, "Succeeded"))


async def test_failure_of_an_adopted_launcher_is_that_of_its_last_retry(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await retry_adopted_launcher(cluster, mpi_job(policy={"backoffLimit": 1}))
        await finish_launcher(cluster, 3)
        await cluster.until(lambda: is_true(cluster, "Failed"))
        assert "exit code 3" in condition(cluster, "Failed")["message"]
        assert not unlabelled(cluster)


async def test_launcher_with_a_ttl_is_not_run_again(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        manifest = mpi_job(policy={"ttlSecondsAfterFinished": 0})
        await left_behind(cluster, manifest, "Created", "Running", replicaStatuses=RUNNING)
        cluster.start()
        await cluster.until(lambda: cluster.phase(JOB) == "Running")
        await finish_launcher(cluster)
        await cluster.ended(JOB)
        await cluster.until(lambda: not launcher_job(cluster))
        await cluster.settled()
        assert is_true(cluster, "Succeeded")
        assert not launcher_job(cluster)


async def test_suspended_job_is_adopted_and_resumed(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        manifest = mpi_job(0, policy={"suspend": True})
        del manifest["spec"]["mpiReplicaSpecs"]["Worker"]
        await left_behind(cluster, manifest, "Created", "Suspended", startTime=None)
        children = uids(cluster)
        cluster.start()
        await cluster.until(lambda: not unlabelled(cluster))
        await set_suspended(cluster, suspended=False)
        await cluster.until(lambda: is_true(cluster, "Running"))
        assert children <= uids(cluster)


async def test_ended_job_is_left_as_it_is(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        done: JSON = {"Launcher": {"succeeded": 1}, "Worker": {}}
        manifest = mpi_job(policy={"cleanPodPolicy": "None"})
        await left_behind(
            cluster,
            manifest,
            "Created",
            "Succeeded",
            replicaStatuses=done,
            completionTime=timestamp(cluster),
        )
        children = uids(cluster)
        cluster.start()
        await cluster.until(lambda: cluster.phase(JOB) == "Done")
        await cluster.settled()
        assert uids(cluster) == children
        assert cluster.status(JOB)["dlctl"]["version"] == "v2beta1"
        assert counts(cluster)["Launcher"] == {"succeeded": 1}
