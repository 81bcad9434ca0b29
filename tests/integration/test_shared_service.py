"""Jobs whose replicas share one headless service, from their start to their end."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES
from tests.integration.kubeflow import change, forever, job_of, only, running
from tests.integration.replicas import created
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit

KIND = "PyTorchJob"
COUNTS = {"Master": 1, "Worker": 3}
OUTCOMES = forever("master-0", "worker-0", "worker-1", "worker-2")
NAMES = ["linear-master-0", "linear-worker-0", "linear-worker-1", "linear-worker-2"]


def sharing(**fields: Any) -> JSON:
    wire = job_of(KIND, COUNTS, **fields)
    return {**wire, "metadata": {**wire["metadata"], "annotations": {"dlctl.dev/service": "job"}}}


async def submit(cluster: ClusterHarness, wire: JSON, outcomes: Any = OUTCOMES) -> None:
    await cluster.submit(wire, outcomes)
    await running(cluster)
    await cluster.settled()


async def annotate(cluster: ClusterHarness, value: str | None) -> None:
    metadata = {"annotations": {"dlctl.dev/service": value}}
    await cluster.user.patch(only(KIND)[0].resource, cluster.key(), {"metadata": metadata})
    await cluster.settled()


def master_addresses(cluster: ClusterHarness) -> set[str]:
    """Return the master's address in the environments of all pods."""
    containers = [pod["spec"]["containers"][0] for pod in cluster.objects(PODS)]
    variables = [variable for container in containers for variable in container["env"]]
    return {v["value"] for v in variables if v["name"] == "MASTER_ADDR"}


def host_names(cluster: ClusterHarness) -> list[str]:
    specs = [pod["spec"] for pod in cluster.objects(PODS)]
    return sorted(f"{spec.get('hostname')}.{spec.get('subdomain')}" for spec in specs)


async def test_job_has_one_service_and_names_within_it(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await submit(cluster, sharing())
        assert sorted(cluster.pods()) == NAMES
        assert cluster.services() == ["linear"]
        assert host_names(cluster) == [f"{name}.linear" for name in NAMES]
        assert master_addresses(cluster) == {"linear-master-0.linear"}
        made = {w: n for w, n in cluster.history.writes().items() if w[0] == "create"}
        assert made[("create", "pods")] == 4
        assert made[("create", "services")] == 1
        assert cluster.events()["SuccessfulCreateService"] == "Created service: linear"
        assert not cluster.history.violations


async def test_restarted_replica_and_controller_keep_the_names(start_cluster: StartCluster) -> None:
    outcomes = {**OUTCOMES, "worker-1": (Exit(137), KEEPS_RUNNING)}
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await cluster.submit(sharing(policy="ExitCode"), outcomes)
        await cluster.until(lambda: created(cluster, "worker-1") == 2)
        await cluster.settled()
        await cluster.kill_all()
        cluster.start()
        await cluster.settled()
        assert host_names(cluster) == [f"{name}.linear" for name in NAMES]
        assert cluster.services() == ["linear"]
        assert cluster.history.writes()["create", "services"] == 1


@pytest.mark.parametrize("annotated", [True, False])
async def test_change_of_the_annotation_waits_until_the_job_is_resumed(
    start_cluster: StartCluster, *, annotated: bool
) -> None:
    wire = sharing() if annotated else job_of(KIND, COUNTS)
    of_job, of_replicas = ["linear"], NAMES
    before, after = (of_job, of_replicas) if annotated else (of_replicas, of_job)
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await submit(cluster, wire)
        await annotate(cluster, None if annotated else "job")
        assert sorted(cluster.services()) == before

        # A replica that is replaced meanwhile joins the others.
        uid = cluster.objects(PODS)[0]["metadata"]["uid"]
        await cluster.user.delete(PODS, cluster.key("linear-worker-2"))
        await cluster.until(lambda: created(cluster, "worker-2") == 2)
        await cluster.settled()
        assert sorted(cluster.services()) == before
        assert len(master_addresses(cluster)) == 1
        assert uid in {pod["metadata"]["uid"] for pod in cluster.objects(PODS)}

        await change(cluster, KIND, {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        await change(cluster, KIND, {"runPolicy": {"suspend": False}})
        await running(cluster)
        await cluster.settled()
        assert sorted(cluster.services()) == after
        assert sorted(cluster.pods()) == NAMES
        suffix = "" if annotated else ".linear"
        assert master_addresses(cluster) == {f"linear-master-0{suffix}"}


@pytest.mark.parametrize(("policy", "left"), [("All", []), ("Running", []), ("None", ["linear"])])
async def test_service_is_cleaned_up_with_the_pods(
    start_cluster: StartCluster, policy: str, left: list[str]
) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        wire = sharing(run_policy={"cleanPodPolicy": policy})
        await cluster.submit(wire, {**OUTCOMES, "master-0": (DONE,)})
        await cluster.until(lambda: cluster.phase() == "Done")
        await cluster.settled()
        assert cluster.services() == left


async def test_service_deleted_by_hand_is_created_again(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await submit(cluster, sharing())
        await cluster.user.delete(SERVICES, cluster.key())
        await cluster.until(lambda: cluster.history.writes()["create", "services"] == 2)
        await cluster.settled()
        assert cluster.services() == ["linear"]
        assert sum(cluster.history.created.values()) == 4


async def test_job_waits_for_a_name_that_a_foreign_service_has(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        body = {"metadata": {"name": "linear"}, "spec": {"clusterIP": "None"}}
        await cluster.user.create(SERVICES, cluster.namespace, body)
        cluster.start()
        await cluster.submit(sharing(), OUTCOMES)
        await cluster.until(lambda: "FailedCreateService" in cluster.events())
        await cluster.settled()
        assert cluster.pods() == []
        message = 'Error creating: services "linear" already exists'
        assert cluster.events()["FailedCreateService"] == message
        await cluster.user.delete(SERVICES, cluster.key())
        await running(cluster)
        assert cluster.services() == ["linear"]


async def test_unknown_value_fails_the_job_with_the_fix(start_cluster: StartCluster) -> None:
    wire = sharing()
    wire["metadata"]["annotations"]["dlctl.dev/service"] = "one"
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await cluster.submit(wire)
        await cluster.until(lambda: cluster.phase() == "Failed")
        message = cluster.condition("Failed")
        assert "metadata.annotations[dlctl.dev/service]: is 'one': use job or replica" in message
        assert (cluster.pods(), cluster.services()) == ([], [])
