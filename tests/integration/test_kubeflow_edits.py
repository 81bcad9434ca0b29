"""Edits of running jobs of Kubeflow's kinds, and how the jobs fail afterwards."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.integration.kubeflow import (
    change,
    conditions,
    forever,
    job_of,
    only,
    phases,
    running,
)
from tests.support.harness import ClusterHarness, StartCluster


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
