"""Elastic jobs with an autoscaler: it is created, changed and deleted with the run."""

from tests.integration.autoscaling import change, elastic, limits
from tests.support.harness import StartCluster


async def test_autoscaler_follows_the_policy_and_is_deleted_during_suspension(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(elastic())
        await cluster.until(lambda: limits(cluster) == [(1, 3)])
        await change(cluster, {"elasticPolicy": {"maxReplicas": 5}})
        await cluster.until(lambda: limits(cluster) == [(1, 5)])

        await change(cluster, {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: not limits(cluster))
        await change(cluster, {"runPolicy": {"suspend": False}})
        await cluster.until(lambda: limits(cluster) == [(1, 5)])
        await change(cluster, {"elasticPolicy": {"metrics": None}})
        await cluster.until(lambda: not limits(cluster))


async def test_autoscaler_is_deleted_when_the_job_ends(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(elastic())
        await cluster.until(lambda: limits(cluster))
        await change(cluster, {"runPolicy": {"activeDeadlineSeconds": 1}})
        await cluster.ended()
        await cluster.until(lambda: not limits(cluster))
