"""Pods that somebody else deletes: created again at once, but not in a loop."""

import re
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.kube.errors import NotFoundError
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.builders import kind_of
from tests.integration.kubeflow import job_of
from tests.integration.replicas import created
from tests.support.harness import ClusterHarness, StartCluster

KIND: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
NAME: Final = "linear-worker-0"
FORBIDDEN: Final = StatusError(403, "Forbidden", "not now")


async def suspend(cluster: ClusterHarness, *, suspended: bool) -> None:
    patch = {"spec": {"runPolicy": {"suspend": suspended}}}
    await cluster.user.patch(KIND.resource, cluster.key(), patch)


async def delete_for(cluster: ClusterHarness, seconds: float, every_s: float) -> None:
    """Delete the pod of the first worker again and again, as a taint of its node would."""
    for _ in range(int(seconds / every_s)):
        try:
            await cluster.user.delete(PODS, cluster.key(NAME), grace_period_s=0)
        except NotFoundError:
            pass
        await cluster.advance(every_s)


def job() -> JSON:
    return job_of("PyTorchJob", {"Master": 1, "Worker": 2}, policy="ExitCode")


@pytest.mark.embedded_only("it advances the clock")
@pytest.mark.parametrize("every_s", [0.1, 1, 5])
async def test_pod_that_is_deleted_again_and_again_is_created_with_a_back_off(
    every_s: float, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await cluster.submit(job())
        await cluster.until(lambda: cluster.condition("Running"))
        await delete_for(cluster, 60, every_s)
        # At once, then after 5 s, 10 s, 20 s.
        assert 5 <= created(cluster, "worker-0") <= 6
        assert created(cluster, "worker-1") == 1
        await cluster.until(lambda: cluster.condition("Waiting"))
        assert re.fullmatch(
            r"worker-0 \(1 of 3 replicas\) waits: the last [56] pods were deleted or changed by "
            "others soon after the creation: check the taints of the node, other controllers and "
            "webhooks",
            cluster.condition("Waiting"),
        )
        await cluster.advance(45)
        assert NAME in cluster.pods()
        assert cluster.condition("Running")
        assert not cluster.condition("Waiting")


@pytest.mark.embedded_only("it advances the clock")
async def test_pod_that_lasts_is_replaced_at_once(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await cluster.submit(job())
        await cluster.until(lambda: cluster.condition("Running"))
        for count in range(1, 5):
            await cluster.advance(11)
            assert created(cluster, "worker-0") == count
            await cluster.user.delete(PODS, cluster.key(NAME), grace_period_s=0)
            await cluster.advance(1)
            assert created(cluster, "worker-0") == count + 1


@pytest.mark.embedded_only("it answers with faults")
async def test_pods_of_which_dlctl_cannot_delete_one_at_once_are_created_again_at_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        cluster.start()
        await cluster.submit(job())
        for count in (1, 2, 3):
            await cluster.until(lambda: cluster.condition("Running"))
            assert created(cluster, "worker-0") == count
            fault = Fault(verb="delete", resource="pods", name="linear-worker-1", status=FORBIDDEN)
            cluster.server.faults.add(fault)
            await suspend(cluster, suspended=True)
            await cluster.until(lambda: not cluster.pods())
            assert cluster.server.faults.matched
            await suspend(cluster, suspended=False)
            await cluster.advance(1)
        assert len(cluster.pods()) == 3
