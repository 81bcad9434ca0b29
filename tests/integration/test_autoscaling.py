"""Elastic jobs with an autoscaler: it is created, changed and deleted with the run."""

from typing import Any

from dlctl.frameworks.kubeflow.torch_elastic import HORIZONTAL_POD_AUTOSCALERS
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness, StartCluster

JSON = dict[str, Any]
JOBS = kind_of("kubeflow.org/v1", "PyTorchJob").resource


def elastic(**run_policy: Any) -> JSON:
    target = {"type": "Utilization", "averageUtilization": 80}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    job = training_job("PyTorchJob", Worker=2)
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}
    job["spec"]["runPolicy"] = run_policy
    return job


async def change(cluster: ClusterHarness, spec: JSON) -> None:
    await cluster.user.patch(JOBS, cluster.key(), {"spec": spec})


def limits(cluster: ClusterHarness) -> list[tuple[int, int]]:
    scalers = cluster.objects(HORIZONTAL_POD_AUTOSCALERS)
    return [(s["spec"]["minReplicas"], s["spec"]["maxReplicas"]) for s in scalers]


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
        await cluster.submit(elastic(activeDeadlineSeconds=3))
        await cluster.until(lambda: limits(cluster))
        await cluster.ended()
        await cluster.until(lambda: not limits(cluster))
