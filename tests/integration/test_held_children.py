"""Children that finalizers of other programs keep after their deletion."""

from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES, Resource
from tests.builders import training_job
from tests.support.harness import ClusterHarness, StartCluster

HOLD: Final = "example.com/backup"
NAME: Final = "linear-worker-1"


async def set_finalizers(cluster: ClusterHarness, resource: Resource, names: list[str]) -> None:
    body = {"metadata": {"finalizers": names or None}}
    await cluster.user.patch(resource, cluster.key(NAME), body)


def uid(cluster: ClusterHarness, resource: Resource) -> str:
    found: list[JSON] = [o for o in cluster.objects(resource) if o["metadata"]["name"] == NAME]
    return str(found[0]["metadata"]["uid"]) if found else ""


@pytest.mark.embedded_only("it advances the clock")
@pytest.mark.parametrize("resource", [PODS, SERVICES], ids=["pod", "service"])
async def test_child_that_a_finalizer_keeps_is_awaited_without_further_requests(
    resource: Resource, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        job = training_job("PyTorchJob", Master=1, Worker=2)
        for spec in job["spec"]["pytorchReplicaSpecs"].values():
            spec["restartPolicy"] = "ExitCode"
        await cluster.submit(job)
        await cluster.until(lambda: cluster.condition("Running"))
        old = uid(cluster, resource)
        await set_finalizers(cluster, resource, [HOLD])
        await cluster.user.delete(resource, cluster.key(NAME))
        await cluster.settled()
        written = cluster.history.writes()
        await cluster.advance(600)
        assert cluster.history.writes() - written == {}
        # A service answers until it is gone.
        assert bool(cluster.condition("Waiting")) is (resource == PODS)
        assert uid(cluster, resource) == old

        await set_finalizers(cluster, resource, [])
        await cluster.until(lambda: uid(cluster, resource) not in ("", old))
        await cluster.until(lambda: not cluster.condition("Waiting"))
