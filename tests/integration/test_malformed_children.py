"""Children that cannot be decoded: an event of their job says which."""

from typing import Final

import pytest

from dlctl.api.meta import EVENTS, PODS, SERVICES, Resource
from tests.builders import kind_of
from tests.integration.kubeflow import job_of
from tests.support.harness import ClusterHarness, StartCluster

KIND: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
NAME: Final = "linear-worker-0"
# Together more than is kept of the metadata of an object.
LABELS: Final = {f"label-{number:050}": "v" * 63 for number in range(300)}


def reports(cluster: ClusterHarness) -> list[tuple[str, int]]:
    """Return the messages and the counts of the events about malformed objects."""
    return [
        (event["message"].partition(":")[0], event.get("count", 1))
        for event in cluster.objects(EVENTS)
        if event["reason"] == "Malformed" and event["involvedObject"]["name"] == "linear"
    ]


@pytest.mark.parametrize(
    ("resource", "kind"),
    [pytest.param(PODS, "Pod", id="pod"), pytest.param(SERVICES, "Service", id="service")],
)
async def test_job_with_a_malformed_child_says_once_which_one(
    resource: Resource, kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 2}))
        await cluster.until(lambda: cluster.condition("Running"))
        for number in range(3):
            labels = {**LABELS, "change": str(number)}
            await cluster.user.patch(resource, cluster.key(NAME), {"metadata": {"labels": labels}})
            await cluster.settled()
        text = f"{kind} {NAME} cannot be decoded, and its changes are ignored"
        assert reports(cluster) == [(text, 1)]
        assert cluster.condition("Running")


async def test_job_says_which_pod_is_malformed_when_the_controller_starts(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 2}))
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.kill_all()
        await cluster.user.patch(PODS, cluster.key(NAME), {"metadata": {"labels": LABELS}})
        cluster.start()
        await cluster.until(lambda: reports(cluster))
        await cluster.settled()
        assert len(reports(cluster)) == 1
