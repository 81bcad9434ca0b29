"""Elastic PyTorchJobs with an autoscaler."""

from typing import Any

from dlctl.api.json_types import JSON
from dlctl.frameworks.kubeflow.torch_elastic import HORIZONTAL_POD_AUTOSCALERS
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness

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
