"""Metrics of jobs after restarts and phase changes."""

from typing import Any

from tests.builders import kind_of, mxjob
from tests.integration.kubeflow import job_of
from tests.integration.mpi_jobs import JOB, MPI, MPIJOBS, is_true
from tests.integration.mxjobs import metric_value
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Evicted, Exit, Outcome
from tests.support.running_controller import RunningController


def job_with_new_pods() -> dict[str, Any]:
    """Return a job whose failed containers get new pods, and are not restarted in place."""
    manifest = mxjob()
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


async def test_restarts_are_counted_once_each_by_cause(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(job_with_new_pods(), {"worker-0": [Exit(137), Evicted(), DONE]})
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


async def test_exit_codes_that_no_process_has_share_one_series(start_cluster: StartCluster) -> None:
    forged: list[Outcome] = [*map(Exit, (256, 100_000, 2**31 - 1)), KEEPS_RUNNING]
    async with start_cluster() as cluster:
        controller = cluster.start()
        job = job_of("PyTorchJob", {"Master": 1}, policy="ExitCode")
        await cluster.submit(job, {"master-0": forged})
        await cluster.until(lambda: sum(restarts_by_code(controller).values()) == 3)
        assert restarts_by_code(controller) == {"other": 3}


def restarts_by_code(controller: RunningController) -> dict[str, float]:
    """Return the number of restarts by the label of the exit code."""
    (counter,) = controller.manager.metrics.dlctl_job_restarts_total.collect()
    totals = (one for one in counter.samples if one.name.endswith("_total"))
    return {one.labels["exit_code"]: one.value for one in totals}


async def test_failed_attempts_are_recorded_and_counted_by_cause(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(job_with_new_pods(), {"worker-0": [Evicted(), Exit(1)]})
        status = await cluster.ended()
        await cluster.settled()
        attempts = status["attempts"]
        assert [(one["number"], one["cause"], one["replica"]) for one in attempts] == [
            (0, "Eviction", "worker-0"),
            (1, "UserCode", "worker-0"),
        ]
        assert "lostSeconds" in attempts[0]
        for cause in ("Eviction", "UserCode"):
            failures = {"namespace": cluster.namespace, "cause": cause}
            assert metric_value(controller, "dlctl_job_failures_total", **failures) == 1


async def test_mpijob_with_a_refused_template_counts_as_one_of_mpi_operator_that_failed(
    start_cluster: StartCluster,
) -> None:
    volumes = [{"name": "no_dns_label", "emptyDir": {}}]
    async with start_cluster(kinds=[MPI]) as cluster:
        controller = cluster.start()
        await cluster.submit(mpi_job(worker={"volumes": volumes}), {})
        await cluster.until(lambda: is_true(cluster, "Failed"))
        await cluster.settled()
        sample = controller.manager.metrics.registry.get_sample_value
        assert sample("mpi_operator_jobs_created_total") == 1
        assert sample("mpi_operator_jobs_failed_total") == 1
        labels = {"job_namespace": cluster.namespace, "framework": "mpi"}
        assert sample("training_operator_jobs_failed_total", labels) is None
        await cluster.user.delete(MPIJOBS, cluster.key(JOB))
        await cluster.until(lambda: not _counted(controller, cluster.namespace))
        assert sample("training_operator_jobs_deleted_total", labels) is None


def _counted(controller: RunningController, namespace: str) -> bool:
    """Return whether any job of a namespace is counted by its phase."""
    (gauge,) = controller.manager.metrics.dlctl_jobs.collect()
    return any(one.labels["namespace"] == namespace and one.value for one in gauge.samples)


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
