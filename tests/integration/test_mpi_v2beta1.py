"""MPIJobs of v2beta1, whose launchers are the pods of batch/v1 Jobs."""

from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, CONFIG_MAPS, PODS, SECRETS, SERVICES, Object
from dlctl.kube.queries import PatchKind
from tests.integration.mpi_jobs import (
    JOB,
    LAUNCHER,
    MPI,
    MPIJOBS,
    condition,
    counts,
    finish_launcher,
    is_true,
    launcher_job,
    pods,
    set_suspended,
    submit,
)
from tests.mpi_v2beta1 import mpi_job
from tests.support.batch_jobs import batch_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import Evicted


async def scale(cluster: ClusterHarness, workers: int) -> None:
    """Set the number of workers, and wait until all run and are in the host file."""
    patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
    await cluster.user.patch(MPIJOBS, cluster.key(JOB), patch)
    await cluster.until(lambda: len(pods(cluster, "worker", "Running")) == workers)
    await cluster.until(lambda: _hosts(cluster) == workers)


async def test_job_runs_and_succeeds_with_its_launcher(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job(policy={"cleanPodPolicy": "Running"}))
        await cluster.until(lambda: is_true(cluster, "Running"))
        await cluster.until(lambda: counts(cluster).get("Worker") == {"active": 2})
        assert counts(cluster)["Launcher"] == {"active": 1}
        await finish_launcher(cluster)
        await cluster.until(lambda: is_true(cluster, "Succeeded"))
        await cluster.until(lambda: not pods(cluster, "worker"))
        status, launcher = cluster.status(JOB), launcher_job(cluster)
        assert status["completionTime"] == launcher["status"]["completionTime"]
        assert counts(cluster)["Launcher"] == {"succeeded": 1}
        assert [p["status"]["phase"] for p in pods(cluster, "launcher")] == ["Succeeded"]
        for resource, name in ((SERVICES, JOB), (CONFIG_MAPS, "pi-config"), (SECRETS, "pi-ssh")):
            kept = await cluster.user.get(resource, cluster.key(name), Object)
            assert not kept.metadata.is_terminating


async def test_failure_of_the_launcher_says_how_it_ended(start_cluster: StartCluster) -> None:
    job = mpi_job(policy={"backoffLimit": 0, "cleanPodPolicy": "All"})
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, job)
        await finish_launcher(cluster, 3)
        await cluster.until(lambda: is_true(cluster, "Failed"))
        failed = condition(cluster, "Failed")
        assert failed["reason"] == "BackoffLimitExceeded/"
        assert "exit code 3" in failed["message"]
        assert counts(cluster)["Launcher"] == {"failed": 1}
        assert cluster.status(JOB)["completionTime"]
        await cluster.until(lambda: not pods(cluster, "worker"))


async def test_launcher_that_waits_starts_once_all_workers_are_ready(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        cluster.node.has_room.clear()
        await submit(cluster, mpi_job(launcherCreationPolicy="WaitForWorkersReady"))
        await cluster.until(lambda: len(pods(cluster, "worker")) == 2)
        assert not launcher_job(cluster)
        cluster.node.has_room.set()
        await cluster.until(lambda: is_true(cluster, "Running"))


async def test_suspended_job_has_all_but_pods_and_runs_when_it_is_resumed(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job(policy={"suspend": True}))
        await cluster.until(lambda: launcher_job(cluster))
        assert launcher_job(cluster)["spec"]["suspend"] is True
        assert cluster.services() == [JOB]
        assert cluster.pods() == []
        assert "startTime" not in cluster.status(JOB)
        await set_suspended(cluster, suspended=False)
        await cluster.until(lambda: is_true(cluster, "Running"))


async def test_launcher_is_not_resumed_while_the_name_of_a_worker_is_taken(
    start_cluster: StartCluster,
) -> None:
    """Without that worker, it would use up its attempts."""
    async with start_cluster(kinds=[MPI]) as cluster:
        container = {"name": "other", "image": "other:1"}
        metadata = {"name": "pi-worker-1", "labels": {"app": "other"}}
        foreign = {"metadata": metadata, "spec": {"containers": [container]}}
        await cluster.user.create(PODS, cluster.namespace, foreign)
        await submit(cluster, mpi_job(policy={"suspend": True}))
        await cluster.until(lambda: launcher_job(cluster))
        await set_suspended(cluster, suspended=False)
        await cluster.until(lambda: is_true(cluster, "Waiting"))
        await cluster.settled()
        assert launcher_job(cluster)["spec"]["suspend"] is True
        assert not pods(cluster, "launcher")
        await cluster.user.delete(PODS, cluster.key("pi-worker-1"))
        await cluster.until(lambda: is_true(cluster, "Running"))


async def test_job_is_suspended_and_resumed_with_another_placement(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job())
        await cluster.until(lambda: is_true(cluster, "Running"))
        await set_suspended(cluster, suspended=True)
        await cluster.until(lambda: is_true(cluster, "Suspended") and not cluster.pods())
        assert cluster.services() == [JOB]
        assert counts(cluster)["Launcher"] == {}
        await cluster.user.patch(
            MPIJOBS, cluster.key(JOB), [_tolerate(cluster, "Launcher")], kind=PatchKind.JSON
        )
        await set_suspended(cluster, suspended=False)
        await cluster.until(lambda: is_true(cluster, "Running"))
        (pod,) = pods(cluster, "launcher", "Running")
        assert _TOLERATION in pod["spec"]["tolerations"]


async def test_suspended_job_still_counts_the_failed_attempts_of_its_launcher(
    start_cluster: StartCluster,
) -> None:
    """As mpi-operator does: its Job goes on counting when it is resumed."""
    manifest = mpi_job()
    manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, manifest)
        await finish_launcher(cluster, 1)
        await cluster.until(lambda: counts(cluster).get("Launcher", {}).get("failed") == 1)
        await set_suspended(cluster, suspended=True)
        await cluster.until(lambda: is_true(cluster, "Suspended"))
        assert counts(cluster) == {"Launcher": {"failed": 1}, "Worker": {}}


async def test_deleted_launcher_is_created_again(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job())
        await cluster.until(lambda: is_true(cluster, "Running"))
        first = launcher_job(cluster)["metadata"]["uid"]
        await cluster.user.delete(BATCH_JOBS, cluster.key(LAUNCHER), propagation="Background")
        await cluster.until(lambda: launcher_job(cluster).get("metadata", {}).get("uid") != first)
        await cluster.until(lambda: counts(cluster)["Launcher"] == {"active": 1})


async def test_ttl_deletes_the_launcher_and_leaves_the_job(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job(policy={"ttlSecondsAfterFinished": 0}))
        await finish_launcher(cluster)
        await cluster.ended(JOB)
        await cluster.until(lambda: not launcher_job(cluster))
        await cluster.settled()
        assert not launcher_job(cluster)
        assert is_true(cluster, "Succeeded")


async def test_ttl_deletes_the_job_if_an_annotation_says_so(start_cluster: StartCluster) -> None:
    job = mpi_job(policy={"ttlSecondsAfterFinished": 0})
    job["metadata"]["annotations"] = {"dlctl.dev/ttl-deletes-job": "true"}
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, job)
        await finish_launcher(cluster)
        await cluster.until(lambda: not cluster.objects(MPI.resource))


async def test_lost_worker_is_replaced(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job())
        await cluster.until(lambda: is_true(cluster, "Running"))
        (lost,) = (p for p in pods(cluster, "worker") if p["metadata"]["name"] == "pi-worker-1")
        await cluster.user.delete(PODS, cluster.key("pi-worker-1"))

        def is_replaced() -> bool:
            uids = {p["metadata"]["uid"] for p in pods(cluster, "worker", "Running")}
            return len(uids) == 2 and lost["metadata"]["uid"] not in uids

        await cluster.until(is_replaced)


@pytest.mark.embedded_only("the controller trusts what it has seen for 10 seconds")
async def test_deleted_secret_is_created_again_for_the_next_worker(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job())
        await cluster.until(lambda: is_true(cluster, "Running"))
        await cluster.advance(15)
        await cluster.user.delete(SECRETS, cluster.key("pi-ssh"))
        await cluster.user.delete(PODS, cluster.key("pi-worker-1"))
        await cluster.until(lambda: cluster.objects(SECRETS))


async def test_secret_that_may_be_somebody_elses_is_reported(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        foreign = {"metadata": {"name": "pi-ssh"}, "data": {}}
        await cluster.user.create(SECRETS, cluster.key(JOB).namespace, foreign)
        await submit(cluster, mpi_job())
        await cluster.until(lambda: "ErrResourceExists" in cluster.events(JOB))
        assert cluster.events(JOB)["ErrResourceExists"] == (
            'Resource "pi-ssh" of Kind "Secret" already exists, and its keys are used: if it was '
            "not made for this MPIJob, delete it, and create the job again"
        )
        await cluster.until(lambda: is_true(cluster, "Running"))


async def test_evicted_worker_is_replaced_and_reported(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job(), worker_1=Evicted())
        await cluster.until(lambda: "MPIJobEvicted" in cluster.events(JOB))
        assert cluster.events(JOB)["MPIJobEvicted"] == "1/2 workers are evicted"
        await cluster.until(lambda: is_true(cluster, "Running"))
        assert not condition(cluster, "Failed")


async def test_workers_follow_their_number(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        await submit(cluster, mpi_job(1))
        await cluster.until(lambda: is_true(cluster, "Running"))
        await scale(cluster, 3)
        await scale(cluster, 1)


@pytest.mark.parametrize("suspended", [False, True])
async def test_service_follows_an_edit_of_run_launcher_as_worker(
    start_cluster: StartCluster, suspended: bool
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:

        async def run_launcher_as_worker(value: bool) -> None:
            patch = {"spec": {"runLauncherAsWorker": value}}
            await cluster.user.patch(MPIJOBS, cluster.key(JOB), patch)
            await cluster.until(lambda: publishes() is value)

        def publishes() -> bool:
            (service,) = cluster.objects(SERVICES)
            return service["spec"].get("publishNotReadyAddresses") is True

        await submit(cluster, mpi_job(policy={"suspend": suspended}))
        await cluster.until(lambda: is_true(cluster, "Suspended" if suspended else "Running"))
        await cluster.until(lambda: bool(cluster.objects(SERVICES)))
        assert not publishes()
        await run_launcher_as_worker(True)
        await run_launcher_as_worker(False)


async def test_name_of_the_launcher_that_is_taken_is_reported(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        foreign = {**batch_job(cluster, suspend=True), "metadata": {"name": LAUNCHER}}
        await cluster.user.create(BATCH_JOBS, cluster.namespace, foreign)
        await submit(cluster, mpi_job())
        await cluster.until(lambda: "ErrResourceExists" in cluster.events(JOB))
        assert launcher_job(cluster)["spec"]["suspend"] is True


_TOLERATION: Final = {"key": "pool", "operator": "Exists"}


def _tolerate(cluster: ClusterHarness, type_: str) -> JSON:
    """Return the operation that adds a toleration to the pods of a type."""
    spec = cluster.job(JOB)["spec"]["mpiReplicaSpecs"][type_]["template"]["spec"]
    path = f"/spec/mpiReplicaSpecs/{type_}/template/spec/tolerations"
    return {"op": "add", "path": path, "value": [*(spec.get("tolerations") or ()), _TOLERATION]}


def _hosts(cluster: ClusterHarness) -> int:
    (files,) = (c for c in cluster.objects(CONFIG_MAPS) if c["metadata"]["name"] == "pi-config")
    return len(files["data"]["hostfile"].splitlines())
