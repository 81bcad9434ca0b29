"""Defaults that only older versions of Kubeflow's kinds have: the API server writes them."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.builders import training_job
from tests.integration.kubeflow import conditions, forever, only
from tests.support.fake_pods import replica_of
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import Exit


def older(kind: str, version: str, counts: dict[str, int], **spec: JSON | str) -> JSON:
    job = training_job(kind, **counts)
    job["spec"].update(spec)
    return {**job, "apiVersion": f"kubeflow.org/{version}"}


def replicas(cluster: ClusterHarness) -> list[str]:
    return sorted(str(replica_of(name, "linear")) for name in cluster.pods())


@pytest.mark.parametrize(
    ("version", "spec", "left"),
    [
        pytest.param("v1", {}, ["ps-0", "worker-0"], id="v1"),
        pytest.param("v1alpha2", {}, ["worker-0"], id="v1alpha2"),
        pytest.param("v1beta1", {}, ["worker-0"], id="v1beta1"),
        pytest.param("v1beta2", {}, ["worker-0"], id="v1beta2"),
        pytest.param("v1beta2", {"cleanPodPolicy": "All"}, [], id="chosen"),
        pytest.param("v1beta2", {"cleanPodPolicy": None}, ["worker-0"], id="null"),
        pytest.param(
            "v1beta2", {"runPolicy": {"cleanPodPolicy": "None"}}, ["ps-0", "worker-0"], id="in v1"
        ),
    ],
)
async def test_servers_of_a_tf_job_are_deleted_as_by_default_in_its_version(
    version: str, spec: JSON, left: list[str], start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.start()
        job = older("TFJob", version, {"PS": 1, "Worker": 1}, **spec)
        await cluster.submit(job, forever("ps-0"))
        await cluster.ended()
        await cluster.settled()
        assert replicas(cluster) == left


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
async def test_all_pods_of_an_older_mx_job_are_deleted_by_default(
    version: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only("MXJob")) as cluster:
        cluster.start()
        counts = {"Scheduler": 1, "Server": 1, "Worker": 1}
        await cluster.submit(older("MXJob", version, counts), forever("server-0"))
        await cluster.ended()
        await cluster.until(lambda: not cluster.objects(PODS))


async def test_launcher_of_a_second_mpi_job_is_retried_by_default(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        cluster.start()
        job = older("MPIJob", "v1alpha2", {"Launcher": 1, "Worker": 1})
        outcomes = {"launcher-0": [Exit(1), Exit(1), Exit(0)], **forever("worker-0")}
        await cluster.submit(job, outcomes)
        await cluster.ended()
        assert conditions(cluster)[-1][0] == "Succeeded"


async def test_launcher_of_a_second_mpi_job_fails_it_after_six_retries(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        cluster.start()
        job = older("MPIJob", "v1alpha2", {"Launcher": 1, "Worker": 1})
        await cluster.submit(job, {"launcher-0": [Exit(1)] * 9, **forever("worker-0")})
        await cluster.ended()
        assert conditions(cluster)[-1][0] == "Failed"
        assert "backoff limit" in cluster.condition("Failed")
