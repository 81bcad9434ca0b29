"""Patches of MXJobs, and their metrics."""

from dlctl.api.json_types import JSON
from tests.builders import kind_of
from tests.support.harness import ClusterHarness
from tests.support.running_controller import RunningController

JOBS = kind_of().resource
NAME = "mxjobs.kubeflow.org"


def metric_value(controller: RunningController, name: str, **labels: str) -> float | None:
    sample = {"kind": NAME, **labels}
    return controller.manager.metrics.registry.get_sample_value(name, sample)


async def patch_spec(cluster: ClusterHarness, spec: JSON) -> None:
    await cluster.user.patch(JOBS, cluster.key(), {"spec": spec})
