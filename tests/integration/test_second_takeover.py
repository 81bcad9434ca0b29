"""Takeovers of jobs that dlctl ran before another operator did, which has edited its children."""

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, PODS, Resource
from dlctl.api.objects.dependents import APPLIED_HASH
from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS
from tests.builders import kind_of, training_job
from tests.integration.mpi_jobs import JOB, MPI, MPIJOBS, pods
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING
from tests.support.pod_groups import install_with_gangs

PYTORCH = kind_of("kubeflow.org/v1", "PyTorchJob")


async def write_as_other_operator(
    cluster: ClusterHarness, jobs: Resource, job: str, child: Resource, name: str, edit: JSON
) -> None:
    """Edit a child, and write the job's status without the part of dlctl."""
    await cluster.user.patch(child, cluster.key(name), edit)
    status: JSON = {"status": {"dlctl": None}}
    await cluster.user.patch(jobs, cluster.key(job), status, subresource="status")


async def test_gang_of_an_elastic_job_is_its_minimum_again(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        kinds = await install_with_gangs(cluster, "scheduler-plugins")
        first = cluster.start(kinds=kinds)
        manifest = training_job("PyTorchJob", Worker=3)
        manifest["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 4}
        (specs,) = (v for n, v in manifest["spec"].items() if n.endswith("ReplicaSpecs"))
        specs["Worker"]["template"]["spec"]["schedulerName"] = "default-scheduler"
        await cluster.submit(manifest, {f"worker-{i}": [KEEPS_RUNNING] for i in range(3)})
        await cluster.until(lambda: cluster.phase() == "Running")
        children = _uids(cluster, PODS, COSCHEDULING_POD_GROUPS)
        await first.stop()
        await write_as_other_operator(
            cluster,
            PYTORCH.resource,
            "linear",
            COSCHEDULING_POD_GROUPS,
            "linear",
            {"spec": {"minMember": 3}},
        )
        cluster.start(kinds=kinds)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        (group,) = cluster.objects(COSCHEDULING_POD_GROUPS)
        assert group["spec"]["minMember"] == 1
        assert _uids(cluster, PODS, COSCHEDULING_POD_GROUPS) == children


async def test_hosts_of_an_mpijob_are_its_workers_again(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        first = cluster.start()
        await cluster.start_job_controller()
        await cluster.submit(mpi_job(), {})
        await cluster.until(lambda: len(pods(cluster, "launcher", "Running")) == 1)
        await cluster.until(lambda: cluster.phase(JOB) == "Running")
        await cluster.settled()
        children, data = _uids(cluster, PODS, CONFIG_MAPS), _config(cluster)
        await first.stop()
        # As with one worker less, which the job had while mpi-operator ran.
        hosts = data["hostfile"].splitlines(keepends=True)[0]
        edit = {"data": {"hostfile": hosts}}
        await write_as_other_operator(cluster, MPIJOBS, JOB, CONFIG_MAPS, f"{JOB}-config", edit)
        cluster.start()
        await cluster.until(lambda: cluster.phase(JOB) == "Running")
        await cluster.settled()
        assert _config(cluster) == data
        assert _uids(cluster, PODS, CONFIG_MAPS) == children


async def test_crash_in_the_adoption_leaves_no_edit_of_the_other_operator(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        first = cluster.start()
        await cluster.start_job_controller()
        await cluster.submit(mpi_job(), {})
        await cluster.until(lambda: cluster.phase(JOB) == "Running")
        await cluster.settled()
        data = _config(cluster)
        await first.stop()
        edit = {"data": {"hostfile": ""}}
        await write_as_other_operator(cluster, MPIJOBS, JOB, CONFIG_MAPS, f"{JOB}-config", edit)
        second = cluster.start()
        while APPLIED_HASH in (_config_map(cluster)["metadata"].get("annotations") or {}):
            cluster.history.changed.clear()
            await cluster.history.changed.wait()
        assert _config(cluster)["hostfile"] == ""
        await second.kill()
        cluster.start()
        await cluster.until(lambda: cluster.phase(JOB) == "Running")
        await cluster.settled()
        assert _config(cluster) == data


def _config(cluster: ClusterHarness) -> JSON:
    data: JSON = _config_map(cluster)["data"]
    return data


def _config_map(cluster: ClusterHarness) -> JSON:
    (found,) = cluster.owned(CONFIG_MAPS, cluster.job(JOB))
    return found


def _uids(cluster: ClusterHarness, *resources: Resource) -> set[str]:
    return {each["metadata"]["uid"] for one in resources for each in cluster.objects(one)}
