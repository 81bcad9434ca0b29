"""Edits of running jobs of Kubeflow's kinds, and how the jobs fail afterwards."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.integration.kubeflow import (
    KINDS,
    Outcomes,
    change,
    chief_of,
    conditions,
    forever,
    job_of,
    only,
    phases,
    running,
)
from tests.integration.replicas import created
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING, Exit


async def edit_workers(cluster: ClusterHarness, kind: str, job: JSON, edit: JSON) -> None:
    field = next(name for name in job["spec"] if name.endswith("ReplicaSpecs"))
    await change(cluster, kind, {field: {"Worker": edit}})


@pytest.mark.parametrize("kind", ["TFJob", "PyTorchJob", "PaddleJob", "JAXJob"])
async def test_job_fails_while_the_workers_that_were_added_have_not_started(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, {"Worker": 1}, policy="ExitCode")
        await cluster.submit(job, forever("worker-0"))
        await running(cluster)
        # What is created in the second of the start may have been there before it.
        await cluster.advance(2)
        cluster.node.has_room.clear()
        await edit_workers(cluster, kind, job, {"replicas": 3})
        await cluster.until(lambda: sorted(phases(cluster)) == ["Pending", "Pending", "Running"])
        await cluster.settled()
        (ran,) = (p for p in cluster.objects(PODS) if p["metadata"]["name"].endswith("worker-0"))
        await cluster.node.finish(ran["metadata"]["uid"], 1)
        await cluster.ended()
        assert conditions(cluster) == [
            ("Created", "True", f"{kind}Created"),
            ("Running", "False", f"{kind}Running"),
            ("Failed", "True", f"{kind}Failed"),
        ]


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
@pytest.mark.parametrize("kind", KINDS)
async def test_exit_that_the_kubelet_has_repeated_fails_no_job_whose_policy_is_edited(
    kind: str, policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, {"Worker": 1, **chief_of(kind)}, policy="OnFailure")
        outcomes: Outcomes = {**forever(), "worker-0": [Exit(1), KEEPS_RUNNING]}
        await cluster.submit(job, outcomes)
        await cluster.until(lambda: _restart_count(cluster) == 1)
        await running(cluster)
        await edit_workers(cluster, kind, job, {"restartPolicy": policy})
        await cluster.settled()
        assert conditions(cluster)[-1] == ("Running", "True", f"{kind}Running")
        assert created(cluster, "worker-0") == 1


def _restart_count(cluster: ClusterHarness) -> int:
    statuses = (p["status"].get("containerStatuses", []) for p in cluster.objects(PODS))
    return max((c["restartCount"] for found in statuses for c in found), default=0)
