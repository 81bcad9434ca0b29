"""MPIJobs of v2beta1 for integration tests: their launchers' Jobs, pods and conditions."""

from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, PODS
from tests.builders import kind_of
from tests.support.harness import ClusterHarness
from tests.support.outcomes import KEEPS_RUNNING, Outcome

MPI: Final = kind_of("kubeflow.org/v1", "MPIJob")
# The version of requests; v1 is the stored one.
MPIJOBS: Final = attrs.evolve(MPI.resource, version="v2beta1")
JOB: Final = "pi"
LAUNCHER: Final = "pi-launcher"
ROLE: Final = "training.kubeflow.org/job-role"


def launcher_job(cluster: ClusterHarness) -> JSON:
    """Return the Job of the launcher; an empty one if there is none."""
    found = (j for j in cluster.objects(BATCH_JOBS) if j["metadata"]["name"] == LAUNCHER)
    return next(found, {})


def pods(cluster: ClusterHarness, role: str, phase: str = "") -> list[JSON]:
    """Return the pods of a role, or those of one phase that are not being deleted."""
    return [
        pod
        for pod in cluster.objects(PODS)
        if pod["metadata"]["labels"].get(ROLE) == role
        and phase in ("", pod["status"].get("phase"))
        and not (phase and "deletionTimestamp" in pod["metadata"])
    ]


def counts(cluster: ClusterHarness) -> JSON:
    found: JSON = cluster.status(JOB).get("replicaStatuses") or {}
    return found


def condition(cluster: ClusterHarness, type_: str) -> JSON:
    stated = cluster.status(JOB).get("conditions") or ()
    return next((each for each in stated if each["type"] == type_), {})


def is_true(cluster: ClusterHarness, type_: str) -> bool:
    return bool(condition(cluster, type_).get("status") == "True")


async def submit(cluster: ClusterHarness, job: JSON, **outcomes: Outcome) -> None:
    """Create a job; ``outcomes`` are those of first pods of replicas, which then keep running."""
    cluster.start()
    await cluster.start_job_controller()
    scripts = {name.replace("_", "-"): [one, KEEPS_RUNNING] for name, one in outcomes.items()}
    await cluster.submit(job, scripts)


async def set_suspended(cluster: ClusterHarness, *, suspended: bool) -> None:
    patch = {"spec": {"runPolicy": {"suspend": suspended}}}
    await cluster.user.patch(MPIJOBS, cluster.key(JOB), patch)


async def finish_launcher(cluster: ClusterHarness, code: int = 0) -> None:
    await cluster.until(lambda: pods(cluster, "launcher", "Running"))
    (pod,) = pods(cluster, "launcher", "Running")
    await cluster.node.finish(pod["metadata"]["uid"], code)
