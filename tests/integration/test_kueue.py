"""Jobs under Kueue, which writes the placement of pods into their templates."""

from typing import Final

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, PODS, ObjectKey
from dlctl.api.objects.workloads import WORKLOADS
from dlctl.local.apiserver.faults import Fault
from dlctl.reconcilers.kueue.finalizer import FINALIZER
from tests.builders import kind_of, mxjob, training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING, Deleted, Exit, Outcome
from tests.support.workloads import create_workload, serve_workloads

JOBS: Final = kind_of("kubeflow.org/v1", "PyTorchJob").resource


async def admit(cluster: ClusterHarness, flavor: str) -> None:
    """Change a job's templates as Kueue does when it admits the job."""
    spec = {"nodeSelector": {"flavor": flavor}, "tolerations": [{"key": flavor}]}
    template = {"metadata": {"labels": {"podset": flavor}}, "spec": spec}
    specs = {type_: {"template": template} for type_ in ("Master", "Worker")}
    await cluster.user.patch(JOBS, cluster.key(), {"spec": {"pytorchReplicaSpecs": specs}})


def flavors(cluster: ClusterHarness) -> list[str]:
    return [(p["spec"].get("nodeSelector") or {}).get("flavor", "") for p in cluster.objects(PODS)]


async def move(cluster: ClusterHarness, flavor: str) -> None:
    await admit(cluster, flavor)
    await cluster.until(lambda: flavors(cluster) == [flavor] * 3)


def uids(cluster: ClusterHarness) -> set[str]:
    return {pod["metadata"]["uid"] for pod in cluster.objects(PODS)}


async def test_waiting_pods_are_replaced_when_their_job_is_admitted_elsewhere(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.require_embedded("there, a scheduler of its own finds room for pods")
        cluster.node.has_room.clear()
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1, Worker=2))
        await cluster.until(lambda: flavors(cluster) == [""] * 3)
        # The suspension in between was not observed.
        await move(cluster, "spot")
        await move(cluster, "reserved")
        await cluster.settled()
        assert cluster.history.writes()["create", "pods"] == 9
        assert "dlctl" in cluster.status()
        assert "restarts" not in cluster.status()["dlctl"]

        cluster.node.has_room.set()
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.settled()
        before = uids(cluster)
        await admit(cluster, "spot")
        await cluster.settled()
        assert uids(cluster) == before, "pods that run are left alone"


async def test_defaults_added_at_admission_do_not_replace_pods(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.require_embedded("there, a scheduler of its own finds room for pods")
        cluster.node.has_room.clear()
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1, Worker=1))
        await cluster.until(lambda: len(cluster.pods()) == 2)
        added = {"spec": {"tolerations": [{"key": "added", "operator": "Exists"}]}}
        for name in cluster.pods():
            await cluster.user.patch(PODS, cluster.key(name), added)
        before = uids(cluster)
        await cluster.advance(60)
        assert uids(cluster) == before


def keep(template: JSON, *finalizers: str) -> None:
    """Add a finalizer to the pods of a template, as Kueue's webhook does for its pod groups."""
    template["metadata"] = {"finalizers": [FINALIZER, *finalizers]}


def kept_job(*finalizers: str) -> JSON:
    job = mxjob(servers=1, workers=1, RuntimeId="abcd")
    for one in job["spec"]["replicaSpecs"]:
        keep(one["template"], *finalizers)
        one["template"]["spec"]["restartPolicy"] = "Never"
    return job


def uid(cluster: ClusterHarness, name: str) -> str:
    found = [p["metadata"]["uid"] for p in cluster.objects(PODS) if p["metadata"]["name"] == name]
    return found[0] if found else ""


@pytest.mark.parametrize(
    "outcome", [pytest.param(Exit(137), id="ended"), pytest.param(Deleted(), id="deleted")]
)
async def test_pod_of_a_kueue_pod_group_is_replaced(
    outcome: Outcome, start_cluster: StartCluster
) -> None:
    outcomes: dict[str, list[Outcome]] = {
        "worker-0": [outcome, KEEPS_RUNNING],
        "scheduler-0": [KEEPS_RUNNING],
    }
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(kept_job(), outcomes)
        await cluster.until(lambda: cluster.history.writes()["create", "pods"] == 4)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        kept = [p["metadata"]["finalizers"] for p in cluster.objects(PODS)]
        assert kept == [[FINALIZER]] * 3, "pods that are there stay Kueue's"


async def test_foreign_finalizers_are_awaited(start_cluster: StartCluster) -> None:
    name, theirs = "linear-worker-abcd-0", "example.com/backup"
    outcomes: dict[str, list[Outcome]] = {
        "worker-0": [Exit(137), KEEPS_RUNNING],
        "scheduler-0": [KEEPS_RUNNING],
    }
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(kept_job(theirs), outcomes)
        await cluster.until(lambda: finalizers(cluster, name) == [theirs])
        old = uid(cluster, name)
        await cluster.settled()
        assert uid(cluster, name) == old
        await cluster.user.patch(PODS, cluster.key(name), {"metadata": {"finalizers": None}})
        await cluster.until(lambda: uid(cluster, name) not in ("", old))


def finalizers(cluster: ClusterHarness, name: str) -> list[str]:
    found = [p for p in cluster.objects(PODS) if p["metadata"]["name"] == name]
    return list(found[0]["metadata"].get("finalizers") or ()) if found else []


async def test_permanently_ended_pods_are_left_to_kueue(start_cluster: StartCluster) -> None:
    job = kept_job()
    job["spec"]["cleanupPodPolicy"] = "All"
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, {})
        await cluster.ended()
        await cluster.settled()
        assert [p["metadata"]["finalizers"] for p in cluster.objects(PODS)] == [[FINALIZER]] * 3


@pytest.mark.embedded_only("it takes away the definition that others use")
async def test_job_does_not_wait_for_a_kueue_whose_removal_was_not_seen(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await serve_workloads(cluster.user)
        silent = Fault(
            verb="watch", resource=WORKLOADS.group_resource, user_agent="dlctl", silent=True
        )
        cluster.server.faults.add(silent)
        job = training_job("PyTorchJob", Worker=1)
        job["spec"]["runPolicy"] = {"suspend": True}
        message = "no quota for nvidia.com/gpu"
        unreserved = {"type": "QuotaReserved", "status": "False", "message": message}
        await create_workload(cluster, await cluster.submit(job), [unreserved])
        cluster.start()
        await cluster.until(lambda: message in cluster.condition("Waiting"))
        await cluster.user.delete(CRDS, ObjectKey("", WORKLOADS.group_resource))
        await cluster.until(lambda: "is suspended" in cluster.condition("Waiting"))

        older = attrs.evolve(WORKLOADS, version="v1beta1")
        await serve_workloads(cluster.user, resource=older)
        await create_workload(cluster, cluster.job(), [unreserved], resource=older)
        await cluster.until(lambda: message in cluster.condition("Waiting"))


async def test_of_thousands_of_workloads_of_a_job_the_newest_are_examined(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind_of("kubeflow.org/v1", "PyTorchJob")]) as cluster:
        cluster.require_embedded("it takes many requests")
        await serve_workloads(cluster.user)
        job = training_job("PyTorchJob", Worker=1)
        job["spec"]["runPolicy"] = {"suspend": True}
        stored = await cluster.submit(job)
        cluster.start()
        await create_workload(cluster, stored, [])
        await cluster.until(lambda: "from queue team-a" in cluster.condition("Waiting"))
        for number in range(64):
            admitted = {"type": "Admitted", "status": "True"}
            await create_workload(cluster, stored, [admitted], suffix=str(number))
        await cluster.user.patch(JOBS, cluster.key(), {"metadata": {"labels": {"a": "b"}}})
        await cluster.until(lambda: "is suspended" in cluster.condition("Waiting"))
