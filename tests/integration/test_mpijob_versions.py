"""The version that an MPIJob is meant in: chosen once, recorded, or asked for."""

from typing import Any, Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, CONFIG_MAPS, PODS, SERVICES
from tests.builders import kind_of, training_job
from tests.integration.kubeflow import Outcomes, only
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit

JOBS: Final = kind_of("kubeflow.org/v1", "MPIJob").resource
RUNS: Final[Outcomes] = dict.fromkeys(("launcher-0", "worker-0", "worker-1"), (KEEPS_RUNNING,))
CHILDREN: Final = (PODS, SERVICES, CONFIG_MAPS, BATCH_JOBS)
ANNOTATION: Final = "dlctl.dev/mpijob-version"
# What the defaults of v2beta1 leave in a spec.
V2BETA1_FIELDS: Final[JSON] = {
    "sshAuthMountPath": "/root/.ssh",
    "slotsPerWorker": 1,
    "mpiImplementation": "OpenMPI",
    "runLauncherAsWorker": False,
    "launcherCreationPolicy": "AtStartup",
}


def mpi_job(version: str, annotation: str = "", **spec: Any) -> JSON:
    job = training_job("MPIJob", Launcher=1, Worker=2)
    job["spec"].update(spec)
    if annotation:
        job["metadata"]["annotations"] = {ANNOTATION: annotation}
    return {**job, "apiVersion": f"kubeflow.org/{version}"}


def recorded(cluster: ClusterHarness) -> str:
    return str((cluster.status().get("dlctl") or {}).get("version") or "")


def uses_ssh(cluster: ClusterHarness) -> bool:
    """Return whether workers are reached by ssh and names, and not by ``kubectl exec``."""
    return "linear" in cluster.services()


async def annotate(cluster: ClusterHarness, version: str) -> None:
    patch = {"metadata": {"annotations": {ANNOTATION: version}}}
    await cluster.user.patch(JOBS, cluster.key(), patch)


@pytest.mark.parametrize(
    ("job", "version"),
    [
        pytest.param(mpi_job("v1"), "v1", id="v1"),
        pytest.param(mpi_job("v1alpha2"), "v1", id="v1alpha2"),
        pytest.param(mpi_job("v2beta1"), "v2beta1", id="v2beta1"),
        pytest.param(
            mpi_job("v2beta1", template={"spec": {"containers": [{"name": "a"}]}}, gpus=1),
            "v2beta1",
            id="v2beta1 with fields of v1alpha1",
        ),
        pytest.param(
            mpi_job("v1", "v2beta1", **V2BETA1_FIELDS), "v2beta1", id="v2beta1 by annotation"
        ),
        pytest.param(mpi_job("v1", "v1", **V2BETA1_FIELDS), "v1", id="v1 by annotation"),
    ],
)
async def test_version_is_recorded_with_the_first_status(
    job: JSON, version: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        cluster.start()
        await cluster.submit(job, RUNS)
        await cluster.until(lambda: recorded(cluster) and "linear-worker-1" in cluster.pods())
        assert (recorded(cluster), uses_ssh(cluster)) == (version, version == "v2beta1")


async def test_recorded_version_outlives_an_apply_of_the_other_one(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        running = cluster.start()
        await cluster.submit(mpi_job("v1"), RUNS)
        await cluster.until(lambda: recorded(cluster) == "v1" and len(cluster.pods()) == 3)
        await running.kill()
        # As from a webhook of v2beta1, and then its annotation.
        await cluster.user.patch(JOBS, cluster.key(), {"spec": V2BETA1_FIELDS})
        await annotate(cluster, "v2beta1")
        cluster.start()
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.settled()
        assert (recorded(cluster), uses_ssh(cluster)) == ("v1", False)


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
async def test_exported_job_waits_until_its_version_is_stated(
    version: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        cluster.start()
        await cluster.submit(mpi_job("v1", **V2BETA1_FIELDS), RUNS)
        await cluster.until(lambda: cluster.condition("Waiting"))
        message = cluster.condition("Waiting")
        assert message.endswith(f"kubectl annotate mpijob linear {ANNOTATION}=v2beta1")
        await cluster.settled()
        assert cluster.events() == {"MPIJobInvalid": message}
        assert (recorded(cluster), cluster.phase()) == ("", "")
        job = cluster.job()
        assert not [each for kind in CHILDREN for each in cluster.owned(kind, job)]

        await annotate(cluster, version)

        await cluster.until(lambda: "linear-worker-1" in cluster.pods())
        assert (recorded(cluster), uses_ssh(cluster)) == (version, version == "v2beta1")
        await cluster.until(lambda: not cluster.condition("Waiting"))


async def test_unknown_version_in_the_annotation_blocks_a_job(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        cluster.start()
        await cluster.submit(mpi_job("v2beta1", "v2"), RUNS)
        await cluster.until(lambda: cluster.condition("Waiting"))
        assert "is 'v2', but must be v1 or v2beta1" in cluster.condition("Waiting")
        await cluster.settled()
        assert not cluster.pods()


async def test_job_of_v1alpha1_runs_as_v1_and_says_so_in_its_own_fields(
    start_cluster: StartCluster,
) -> None:
    mapped = mpi_job("v1alpha1")
    template = mapped["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    job = {**mapped, "spec": {"template": template, "replicas": 2}}
    ends: Outcomes = {**RUNS, "launcher-0": (Exit(1), DONE)}
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        cluster.start()
        await cluster.submit(job, ends)
        await cluster.until(lambda: cluster.status().get("launcherStatus") == "Succeeded")
        await cluster.settled()
        assert (recorded(cluster), uses_ssh(cluster)) == ("v1alpha1", False)
        # Workers go with the end of the launcher, which was retried.
        assert cluster.pods() == ["linear-launcher"]
