"""Metrics of jobs after restarts and phase changes."""

from tests.builders import kind_of, mxjob
from tests.support.harness import RunningController, StartCluster
from tests.support.outcomes import DONE, Evicted, Exit

NAME = "mxjobs.kubeflow.org"


def metric_value(controller: RunningController, name: str, **labels: str) -> float | None:
    sample = {"kind": NAME, **labels}
    return controller.manager.metrics.registry.get_sample_value(name, sample)


async def test_restarts_are_counted_once_each_by_cause(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        manifest = mxjob()
        for entry in manifest["spec"]["replicaSpecs"]:
            entry["template"]["spec"]["restartPolicy"] = "Never"
        await cluster.submit(manifest, {"worker-0": [Exit(137), Evicted(), DONE]})
        await cluster.ended()
        await cluster.settled()
        count = "dlctl_job_restarts_total"
        assert metric_value(controller, count, cause="failure", exit_code="137") == 1
        assert metric_value(controller, count, cause="disruption", exit_code="") == 1
        assert (
            metric_value(controller, "dlctl_job_run_duration_seconds_count", result="succeeded")
            == 1
        )
        assert metric_value(controller, "dlctl_job_start_duration_seconds_count") == 1


async def test_jobs_are_counted_by_phase_until_they_are_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(mxjob(cleanupPodPolicy="None"), {})
        await cluster.ended()
        await cluster.settled()
        jobs = {"name": "dlctl_jobs", "namespace": cluster.namespace}
        assert metric_value(controller, **jobs, phase="Done") == 1
        assert metric_value(controller, **jobs, phase="Running") == 0
        await cluster.user.delete(kind_of().resource, cluster.key())
        await cluster.until(lambda: metric_value(controller, **jobs, phase="Done") is None)
