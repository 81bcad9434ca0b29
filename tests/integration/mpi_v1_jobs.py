"""MPIJobs of v1 for integration tests: their pods, gates and dependents."""

from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness
from tests.support.outcomes import KEEPS_RUNNING, Outcome

JOBS: Final = kind_of("kubeflow.org/v1", "MPIJob").resource
HELD: Final = {"schedulingGates": [{"name": "example.com/held"}]}
RUNS: Final[dict[str, list[Outcome]]] = {"launcher-0": [KEEPS_RUNNING]}
DEPENDENTS: Final = {
    ROLES: "linear-launcher",
    SERVICE_ACCOUNTS: "linear-launcher",
    ROLE_BINDINGS: "linear-launcher",
    CONFIG_MAPS: "linear-config",
}


def mpi_job(workers: int = 2, **spec: Any) -> JSON:
    counts = {"Launcher": 1, "Worker": workers} if workers else {"Launcher": 1}
    job = training_job("MPIJob", **counts)
    job["spec"].update(spec)
    return job


def replicas(job: JSON, type_: str) -> JSON:
    specs: dict[str, JSON] = job["spec"]["mpiReplicaSpecs"]
    return specs[type_]


def gates(cluster: ClusterHarness, pod: str) -> list[str]:
    """Return the gates of a pod, or ``missing``."""
    for found in cluster.objects(PODS):
        if found["metadata"]["name"] == pod:
            return [gate["name"] for gate in found["spec"].get("schedulingGates") or ()]
    return ["missing"]


def phase(cluster: ClusterHarness, pod: str) -> str:
    found = (p for p in cluster.objects(PODS) if p["metadata"]["name"] == pod)
    return next((str((p.get("status") or {}).get("phase")) for p in found), "")


def dependents(cluster: ClusterHarness) -> dict[Resource, str]:
    job = cluster.job()
    return {
        resource: obj["metadata"]["name"]
        for resource in DEPENDENTS
        for obj in cluster.owned(resource, job)
    }


async def suspend(cluster: ClusterHarness, value: bool) -> None:
    patch = {"spec": {"runPolicy": {"suspend": value}}}
    await cluster.user.patch(JOBS, cluster.key(), patch)
