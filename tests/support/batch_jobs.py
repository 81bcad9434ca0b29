"""Batch/v1 Jobs in a cluster of the harness: how to create one, and what has become of it."""

from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, PODS, ObjectKey
from tests.support.harness import ClusterHarness

NAME: Final = "batch"


def batch_job(cluster: ClusterHarness, restart: str = "Never", **spec: Any) -> JSON:
    pod = {
        "restartPolicy": restart,
        "containers": [{"name": "main", "image": "any", "command": ["true"]}],
        # Sooner deleted than the tests' patience ends.
        "terminationGracePeriodSeconds": 1,
        **cluster.node.placement(),
    }
    return {"metadata": {"name": NAME}, "spec": {"template": {"spec": pod}, **spec}}


async def created(cluster: ClusterHarness, restart: str = "Never", **spec: Any) -> None:
    """Create a job in a cluster whose job controller runs."""
    await cluster.start_job_controller()
    await cluster.user.create(BATCH_JOBS, cluster.namespace, batch_job(cluster, restart, **spec))
    await cluster.sync()


def key(cluster: ClusterHarness) -> ObjectKey:
    return cluster.key(NAME)


def exists(cluster: ClusterHarness) -> bool:
    return bool(cluster.objects(BATCH_JOBS))


def status(cluster: ClusterHarness) -> JSON:
    (job,) = cluster.objects(BATCH_JOBS)
    return dict(job.get("status") or {})


def condition(cluster: ClusterHarness, type_: str) -> JSON:
    """Return a condition of the job; an empty one if there is none."""
    stated = status(cluster).get("conditions") or ()
    return next((each for each in stated if each["type"] == type_), {})


def reason(cluster: ClusterHarness, type_: str) -> str:
    """Return the reason of a condition that is true, or an empty string."""
    found = condition(cluster, type_)
    return str(found["reason"]) if found.get("status") == "True" else ""


def pods(cluster: ClusterHarness, phase: str = "") -> list[JSON]:
    """Return the pods, or those of one phase that are not being deleted."""
    found = cluster.objects(PODS)
    if not phase:
        return found
    return [
        pod
        for pod in found
        if pod["status"]["phase"] == phase and "deletionTimestamp" not in pod["metadata"]
    ]


async def running(cluster: ClusterHarness, count: int = 1) -> list[JSON]:
    """Wait until this number of pods runs and the job counts them; return them."""
    await cluster.until(
        lambda: len(pods(cluster, "Running")) == count and status(cluster).get("ready") == count
    )
    return pods(cluster, "Running")


async def finish(cluster: ClusterHarness, code: int = 0) -> None:
    """End the one pod that runs."""
    (pod,) = await running(cluster)
    await cluster.node.finish(pod["metadata"]["uid"], code)
    await cluster.sync()
