"""The role of a launcher: access to the pods of the job's workers, and to no others."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ROLES
from dlctl.kube.errors import AlreadyExistsError
from tests.builders import kind_of
from tests.integration.kubeflow import change, lift_rules, only
from tests.integration.mpi_v1_jobs import DEPENDENTS, RUNS, dependents, mpi_job, replicas, suspend
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE


def entered(cluster: ClusterHarness) -> list[str]:
    """Return the pods into which the launcher can exec."""
    roles = [r for r in cluster.objects(ROLES) if r["metadata"]["name"] == "linear-launcher"]
    rules = [rule for role in roles for rule in role["rules"]]
    return [n for r in rules if "pods/exec" in r["resources"] for n in r["resourceNames"]]


async def foreign_pod(cluster: ClusterHarness, name: str) -> None:
    spec = {"containers": [{"name": "vault", "image": "i"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    await cluster.user.create(PODS, cluster.namespace, body)


async def replace_by_foreign_pod(cluster: ClusterHarness, name: str) -> None:
    """Let another pod take the name of a deleted one before the controller creates it again."""
    while True:
        await cluster.user.delete(PODS, cluster.key(name), grace_period_s=0)
        try:
            await foreign_pod(cluster, name)
        except AlreadyExistsError:
            # The controller was faster.
            continue
        return


@pytest.mark.embedded_only("it names the node of the embedded cluster")
@pytest.mark.parametrize("placed", [{}, {"nodeName": "fake-node"}], ids=["gated", "placed by name"])
async def test_launcher_cannot_exec_into_a_foreign_pod_with_a_workers_name(
    start_cluster: StartCluster, placed: JSON
) -> None:
    job = mpi_job()
    replicas(job, "Launcher")["template"]["spec"].update(placed)
    granted: set[str] = set()
    async with start_cluster() as cluster:
        cluster.start()
        await foreign_pod(cluster, "linear-worker-0")
        cluster.server.storage.observers.append(lambda change: granted.update(entered(cluster)))
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: "linear-worker-0" in str(cluster.events()))
        await cluster.settled()
        assert "linear-launcher" not in cluster.pods()
        assert granted == set()

        await cluster.user.delete(PODS, cluster.key("linear-worker-0"), grace_period_s=0)
        await cluster.until(lambda: cluster.phase() == "Running")
        assert entered(cluster) == ["linear-worker-0", "linear-worker-1"]


@pytest.mark.embedded_only("it names the node of the embedded cluster")
async def test_launcher_with_a_node_name_is_created_after_its_role(
    start_cluster: StartCluster,
) -> None:
    job = mpi_job()
    replicas(job, "Launcher")["template"]["spec"]["nodeName"] = "fake-node"
    seen: list[list[str]] = []
    async with start_cluster() as cluster:
        cluster.server.storage.observers.append(
            lambda change: seen.append(
                entered(cluster) if "linear-launcher" in cluster.pods() else []
            )
        )
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
    both = ["linear-worker-0", "linear-worker-1"]
    assert [names for names in seen if names] == [both] * (len(seen) - seen.index(both))


async def test_role_is_written_once_all_workers_exist(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mpi_job(workers=8), RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        assert cluster.history.writes()["patch", "roles.rbac.authorization.k8s.io"] == 1


async def test_role_omits_a_deleted_worker_until_its_pod_is_back(
    start_cluster: StartCluster,
) -> None:
    job = mpi_job()
    replicas(job, "Worker")["restartPolicy"] = "OnFailure"
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: len(entered(cluster)) == 2)
        await cluster.until(lambda: cluster.phase() == "Running")
        await replace_by_foreign_pod(cluster, "linear-worker-0")
        await cluster.until(lambda: entered(cluster) == ["linear-worker-1"])
        await cluster.settled()
        assert entered(cluster) == ["linear-worker-1"]

        await cluster.user.delete(PODS, cluster.key("linear-worker-0"), grace_period_s=0)
        await cluster.until(lambda: len(entered(cluster)) == 2)


@pytest.mark.parametrize("how", ["suspended", "ended"])
async def test_role_of_a_job_without_pods_grants_no_access(
    start_cluster: StartCluster, how: str
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        launcher = {"launcher-0": [DONE]} if how == "ended" else RUNS
        await cluster.submit(mpi_job(cleanPodPolicy="All"), launcher)
        if how == "ended":
            await cluster.ended()
        else:
            await cluster.until(lambda: cluster.phase() == "Running")
            await suspend(cluster, True)
        await cluster.until(lambda: entered(cluster) == [])
        await cluster.settled()
        assert dependents(cluster) == DEPENDENTS

        if how == "suspended":
            await suspend(cluster, False)
            await cluster.until(lambda: len(entered(cluster)) == 2)
            await cluster.until(lambda: cluster.phase() == "Running")


@pytest.mark.parametrize("how", ["lost", "suspended", "ended"])
async def test_role_omits_a_deleted_worker_under_an_invalid_spec(
    start_cluster: StartCluster, how: str
) -> None:
    broken = {"Worker": {"template": {"metadata": {"labels": {"a": 1}}}}}
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        await lift_rules(cluster, kind_of("kubeflow.org/v1", "MPIJob"))
        first = cluster.start()
        await cluster.submit(mpi_job(cleanPodPolicy="All"), RUNS)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        # A restarted controller does not know the last valid spec.
        await first.kill()
        await change(cluster, "MPIJob", {"mpiReplicaSpecs": broken})
        cluster.start()
        await cluster.until(lambda: cluster.condition("Waiting"))
        await cluster.settled()
        assert len(entered(cluster)) == 2
        if how == "lost":
            await cluster.user.delete(PODS, cluster.key("linear-worker-0"), grace_period_s=0)
        elif how == "suspended":
            await suspend(cluster, True)
        else:
            pods = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.objects(PODS)}
            await cluster.node.finish(pods["linear-launcher"])
        await cluster.settled()
        assert entered(cluster) == (["linear-worker-1"] if how == "lost" else [])
