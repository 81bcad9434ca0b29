"""Pods in other namespaces that name a job as their controller: they have no part in it."""

from typing import Any, Final

import pytest

from dlctl.api.meta import NAMESPACES, PODS
from tests.integration.kubeflow import job_of, only
from tests.support.harness import StartCluster
from tests.support.outcomes import KEEPS_RUNNING

OTHER: Final = "other"


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that is named as the master's, and stays when it is deleted."""
    owner = {key: job[key] for key in ("apiVersion", "kind")}
    owner |= {"name": "linear", "uid": job["metadata"]["uid"], "controller": True}
    return {
        "metadata": {
            "name": "linear-master-0",
            "labels": {"dlctl.dev/managed-by": "dlctl"},
            "finalizers": ["example.com/stays"],
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "nowhere", "containers": [{"name": "pytorch", "image": "x"}]},
    }


@pytest.mark.parametrize("policy", [{}, {"failurePolicy": {"maxRestarts": 3}}], ids=["", "policy"])
async def test_pod_in_another_namespace_is_not_a_jobs_own(
    start_cluster: StartCluster, policy: dict[str, Any]
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.require_embedded("it creates a second namespace")
        cluster.start()
        ranks = {"master-0": (KEEPS_RUNNING,), "worker-0": (KEEPS_RUNNING,)}
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, run_policy=policy)
        await cluster.submit(job, ranks)
        await cluster.until(lambda: cluster.phase() == "Running")
        before, pods = cluster.status(), cluster.pods()

        await cluster.user.create(NAMESPACES, "", {"metadata": {"name": OTHER}}, dict)
        await cluster.user.create(PODS, OTHER, pod_of(cluster.job()), dict)
        # The garbage collector deletes it, and its finalizer keeps it.
        await cluster.advance(120)
        assert cluster.status() == before
        assert cluster.pods() == pods
