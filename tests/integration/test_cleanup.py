"""Clean-up of finished jobs under a kubelet that, like a real one, reports phases late."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES, Resource
from dlctl.local.apiserver.faults import Fault
from tests.builders import training_job
from tests.integration.kubeflow import (
    KINDS,
    Outcomes,
    change,
    chief_of,
    forever,
    job_of,
    only,
    replica_specs,
)
from tests.integration.replicas import replicas
from tests.support.harness import StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING

SIDECAR = "upload"


def success_replica(kind: str) -> str:
    """Return the replica whose success completes the job."""
    chief = next(iter(chiefs(kind)), "")
    return f"{chief.lower()}-0" if chief else "worker-0"


def chiefs(kind: str) -> dict[str, int]:
    return {"Master": 1} if kind in ("PyTorchJob", "PaddleJob") else chief_of(kind)


def cleaned(kind: str, policy: str, *, sidecar: bool = False) -> JSON:
    """Return a job of two workers and a chief, or of one worker if all workers decide."""
    counts = {"Worker": 1 if kind == "JAXJob" else 2, **chiefs(kind)}
    job = job_of(kind, counts, policy="Never", run_policy={"cleanPodPolicy": policy})
    if sidecar:
        for spec in replica_specs(job).values():
            spec["template"]["spec"]["containers"].append({"name": SIDECAR, "image": "up:1"})
    return job


def going_on(kind: str) -> Outcomes:
    return dict.fromkeys(others(kind), (KEEPS_RUNNING,))


def others(kind: str) -> set[str]:
    return {"worker-0", "worker-1"} - {success_replica(kind)} if kind != "JAXJob" else set()


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
@pytest.mark.parametrize("kind", KINDS)
async def test_pod_that_has_just_ended_is_kept_unless_all_are_deleted(
    kind: str, policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        last = success_replica(kind)
        await cluster.submit(cleaned(kind, policy), going_on(kind), last_replica=last)
        await cluster.ended()
        await cluster.settled()
        everybody = sorted({last, *others(kind)})
        assert replicas(cluster.pods()) == {"None": everybody, "Running": [last], "All": []}[policy]
        for pod in cluster.objects(PODS):
            ended = replicas([pod["metadata"]["name"]]) == [last]
            assert pod["status"]["phase"] == ("Succeeded" if ended else "Running")


@pytest.mark.parametrize("kind", KINDS)
async def test_job_ends_with_its_chief_even_if_a_sidecar_runs(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.node.sidecars.add(SIDECAR)
        cluster.start()
        last = success_replica(kind)
        job = cleaned(kind, "Running", sidecar=True)
        await cluster.submit(job, going_on(kind), last_replica=last)
        status = await cluster.ended()
        assert status["completionTime"]
        assert cluster.condition("Succeeded")
        await cluster.settled()
        assert replicas(cluster.pods()) == [last]
        (pod,) = cluster.objects(PODS)
        assert pod["status"]["phase"] == "Running"

        cluster.node.finish_sidecars(pod["metadata"]["uid"])
        await cluster.settled()
        (pod,) = cluster.objects(PODS)
        assert pod["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob"])
async def test_policy_that_is_changed_after_the_end_is_followed(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        last = success_replica(kind)
        await cluster.submit(cleaned(kind, "None"), going_on(kind), last_replica=last)
        ended = await cluster.ended()
        await cluster.settled()
        assert len(cluster.pods()) == 3
        await change(cluster, kind, {"runPolicy": {"cleanPodPolicy": "Running"}})
        await cluster.until(lambda: replicas(cluster.pods()) == [last])
        await change(cluster, kind, {"runPolicy": {"cleanPodPolicy": "All"}})
        await cluster.until(lambda: not cluster.pods())
        await cluster.settled()
        assert cluster.status()["conditions"] == ended["conditions"]
        assert cluster.status()["replicaStatuses"] == ended["replicaStatuses"]


async def test_endless_sidecar_does_not_keep_a_job_from_ending(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.node.sidecars.add(SIDECAR)
        cluster.start()
        job = cleaned("TFJob", "Running", sidecar=True)
        job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = 20
        await cluster.submit(
            job, {"worker-0": [DONE], **forever("worker-1")}, last_replica="worker-0"
        )
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods())


async def test_clean_up_all_deletes_pods_with_running_sidecars(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.node.sidecars.add(SIDECAR)
        cluster.start()
        await cluster.submit(
            cleaned("TFJob", "All", sidecar=True), forever("worker-1"), last_replica="worker-0"
        )
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods())


async def test_pod_that_ended_together_with_the_chief_is_kept(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("XGBoostJob")) as cluster:
        # All end within the second until the kubelet reports the phase of the first.
        cluster.node.phase_lag_s = 5.0
        cluster.start()
        await cluster.submit(cleaned("XGBoostJob", "Running"), {}, last_replica="master-0")
        await cluster.ended()
        await cluster.settled()
        assert replicas(cluster.pods()) == ["master-0", "worker-0", "worker-1"]


@pytest.mark.embedded_only("it lets requests take effect late")
@pytest.mark.parametrize("resource", [PODS, SERVICES], ids=lambda one: one.plural)
async def test_child_created_late_is_deleted_after_the_end(
    start_cluster: StartCluster, resource: Resource
) -> None:
    job = training_job("PyTorchJob", Master=1, Worker=1)
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "All"}
    late = Fault(
        user_agent="dlctl", verb="create", resource=resource.plural, late_s=8.0, times=None
    )
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        cluster.server.faults.add(late)
        await cluster.user.delete(resource, cluster.key("linear-worker-0"), grace_period_s=0)
        await cluster.advance(2)
        for pod in cluster.objects(PODS):
            await cluster.node.finish(pod["metadata"]["uid"])
        await cluster.ended()
        await cluster.until(lambda: cluster.objects(resource))
        await cluster.until(lambda: not cluster.objects(resource))
