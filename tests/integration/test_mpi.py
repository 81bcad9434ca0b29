"""MPI jobs: gated launchers, host files that follow the workers, termination."""

import attrs
import pytest

from dlctl.api.meta import CONFIG_MAPS, PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, ObjectKey
from dlctl.api.objects.pods import WORKERS_RUNNING_GATE
from tests.builders import renderer_of
from tests.integration.mpi_v1_jobs import (
    DEPENDENTS,
    HELD,
    JOBS,
    RUNS,
    dependents,
    gates,
    mpi_job,
    phase,
    replicas,
    suspend,
)
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, Exit
from tests.support.training_operator import operator_children


def hosts(cluster: ClusterHarness) -> list[str]:
    """Return the workers that an elastic program would discover."""
    for config in cluster.objects(CONFIG_MAPS):
        if config["metadata"]["name"] == "linear-config":
            _, *lines = config["data"]["discover_hosts.sh"].splitlines()
            return [line.removeprefix("echo ").removesuffix(":1") for line in lines]
    return ["missing"]


async def release(cluster: ClusterHarness, pod: str) -> None:
    await cluster.user.patch(PODS, cluster.key(pod), {"spec": {"schedulingGates": None}})


async def test_launcher_is_gated_until_all_workers_run(start_cluster: StartCluster) -> None:
    job = mpi_job()
    replicas(job, "Worker")["template"]["spec"].update(HELD)
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await release(cluster, "linear-worker-0")
        await cluster.until(lambda: phase(cluster, "linear-worker-0") == "Running")
        await cluster.settled()
        assert gates(cluster, "linear-launcher") == [WORKERS_RUNNING_GATE]
        assert hosts(cluster) == []

        await release(cluster, "linear-worker-1")
        await cluster.until(lambda: phase(cluster, "linear-launcher") == "Running")
        assert hosts(cluster) == ["linear-worker-0", "linear-worker-1"]
        await cluster.until(lambda: cluster.phase() == "Running")


async def test_users_own_scheduling_gates_are_kept(start_cluster: StartCluster) -> None:
    job = mpi_job()
    replicas(job, "Launcher")["template"]["spec"].update(HELD)
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: gates(cluster, "linear-launcher") == ["example.com/held"])
        await cluster.settled()
        assert phase(cluster, "linear-launcher") == "Pending"

        await release(cluster, "linear-launcher")
        await cluster.until(lambda: phase(cluster, "linear-launcher") == "Running")


async def test_launcher_without_workers_is_not_gated(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(workers=0), RUNS)
        await cluster.until(lambda: phase(cluster, "linear-launcher") == "Running")


async def test_restarted_launcher_is_gated_again(start_cluster: StartCluster) -> None:
    job = mpi_job(workers=1)
    replicas(job, "Launcher")["restartPolicy"] = "ExitCode"
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, {"launcher-0": [Exit(143), DONE]})
        await cluster.ended()
        assert cluster.condition("Succeeded")
        assert cluster.status()["dlctl"]["restarts"]["launcher-0"]["failures"] == 1
        assert gates(cluster, "linear-launcher") == []


async def test_hosts_follow_the_running_workers(start_cluster: StartCluster) -> None:
    job = mpi_job()
    replicas(job, "Worker")["restartPolicy"] = "OnFailure"
    async with start_cluster() as cluster:
        # Long enough to be seen on a busy machine.
        cluster.options = attrs.evolve(
            cluster.options, restart_backoff_s=8.0, restart_backoff_cap_s=8.0
        )
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.until(lambda: hosts(cluster) == ["linear-worker-0", "linear-worker-1"])
        (worker,) = (p for p in cluster.objects(PODS) if p["metadata"]["name"] == "linear-worker-0")
        await cluster.node.evict(worker["metadata"]["uid"])
        await cluster.until(lambda: hosts(cluster) == ["linear-worker-1"])
        await cluster.until(lambda: hosts(cluster) == ["linear-worker-0", "linear-worker-1"])
        assert cluster.phase() == "Running"


async def test_added_workers_are_hosts_that_the_launcher_can_exec_into(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(workers=1), RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        workers = {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}
        await cluster.user.patch(JOBS, cluster.key(), {"spec": workers})
        await cluster.until(lambda: hosts(cluster) == ["linear-worker-0", "linear-worker-1"])
        (role,) = cluster.owned(ROLES, cluster.job())
        assert role["rules"][-1]["resourceNames"] == ["linear-worker-0", "linear-worker-1"]


async def test_suspended_job_keeps_everything_except_its_pods(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(), RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        await suspend(cluster, True)
        await cluster.until(lambda: cluster.condition("Suspended") and not cluster.pods())
        await cluster.settled()
        assert dependents(cluster) == DEPENDENTS

        await suspend(cluster, False)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.until(lambda: hosts(cluster) == ["linear-worker-0", "linear-worker-1"])


async def test_job_ends_with_its_launcher_and_its_workers_are_cleaned_up(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(cleanPodPolicy="Running"), {})
        ended = await cluster.ended()
        await cluster.until(lambda: cluster.pods() == ["linear-launcher"])
        assert ended["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
        assert cluster.condition("Succeeded") == "MPIJob linear is successfully completed."
        assert dependents(cluster) == DEPENDENTS
        assert cluster.services() == []


async def test_failed_worker_fails_the_job(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(), {**RUNS, "worker-1": [Exit(1)]}, last_replica="worker-1")
        ended = await cluster.ended()
        assert ended["conditions"][-1]["reason"] == "MPIJobMPIJobFailed"
        assert "because 1 Worker replica(s) failed" in cluster.condition("Failed")


@pytest.mark.parametrize(
    ("account", "created"), [("default", []), ("trainer", ["trainer"])], ids=["exists", "missing"]
)
async def test_service_account_of_the_template_is_bound(
    start_cluster: StartCluster, account: str, created: list[str]
) -> None:
    job = mpi_job(workers=1)
    replicas(job, "Launcher")["template"]["spec"]["serviceAccountName"] = account
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        (binding,) = cluster.owned(ROLE_BINDINGS, cluster.job())
        assert [subject["name"] for subject in binding["subjects"]] == [account]
        found = cluster.owned(SERVICE_ACCOUNTS, cluster.job())
        assert [one["metadata"]["name"] for one in found] == created


async def test_service_account_of_another_job_is_shared(start_cluster: StartCluster) -> None:
    names = ["linear", "second"]
    async with start_cluster() as cluster:
        cluster.start()
        for name in names:
            job = mpi_job(workers=1)
            job["metadata"]["name"] = name
            replicas(job, "Launcher")["template"]["spec"]["serviceAccountName"] = "trainer"
            await cluster.submit(job, RUNS)
        await cluster.until(lambda: {cluster.phase(name) for name in names} == {"Running"})
        owned = [cluster.owned(SERVICE_ACCOUNTS, cluster.job(name)) for name in names]
        assert sorted(map(len, owned)) == [0, 1]


async def test_deleted_dependents_are_recreated(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(workers=1), RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        for resource, name in DEPENDENTS.items():
            await cluster.user.delete(resource, ObjectKey(cluster.namespace, name))
        await cluster.until(lambda: dependents(cluster) == DEPENDENTS)
        assert hosts(cluster) == ["linear-worker-0"]


async def test_running_mpi_job_of_training_operator_is_adopted_with_its_pods(
    start_cluster: StartCluster,
) -> None:
    manifest = mpi_job(workers=1)
    async with start_cluster() as cluster:
        job = await cluster.submit(manifest, RUNS)
        for child, obj in operator_children(renderer_of({**manifest, **job})):
            await cluster.user.create(child, cluster.namespace, obj)
        await cluster.until(lambda: phase(cluster, "linear-launcher") == "Running")
        running = {"type": "Running", "status": "True", "reason": "MPIJobRunning"}
        status = {"status": {"conditions": [running]}}
        await cluster.user.patch(JOBS, cluster.key(), status, subresource="status")
        before = uids(cluster)

        cluster.start()
        await cluster.until(lambda: hosts(cluster) == ["linear-worker-0"])
        await cluster.settled()
        assert uids(cluster) == before
        assert cluster.condition("Running")


def uids(cluster: ClusterHarness) -> set[str]:
    job = cluster.job()
    owned = [cluster.owned(resource, job) for resource in (PODS, *DEPENDENTS)]
    return {obj["metadata"]["uid"] for objects in owned for obj in objects}


@pytest.mark.parametrize("name", ["resnet.v1.5", "3d-unet", "n" * 63])
async def test_job_name_that_is_no_service_name_runs_as_under_training_operator(
    name: str, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        job = mpi_job()
        job["metadata"]["name"] = name
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: cluster.condition("Running", name))
        assert sorted(cluster.pods()) == [
            f"{name}-{replica}" for replica in ("launcher", "worker-0", "worker-1")
        ]
