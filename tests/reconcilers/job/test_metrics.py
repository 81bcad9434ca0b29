"""Metrics of jobs: the gauges of a namespace last as long as it has jobs, counters longer."""

from functools import partial
from typing import Any

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey, ObjectMeta
from dlctl.api.status.job_status import JobPhase, JobState
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from dlctl.metrics import Metrics
from dlctl.reconcilers.job.metrics import EMPTY_NAMESPACE_S, JobMetrics
from dlctl.reconcilers.job.status_write import StatusWrite
from tests.builders import NOW, make_job
from tests.mpi_v2beta1 import mpi_job
from tests.support.timing import ManualClock


def jobs(metrics: Metrics) -> dict[tuple[str, str], float]:
    (family,) = metrics.dlctl_jobs.collect()
    return {(s.labels["namespace"], s.labels["phase"]): s.value for s in family.samples}


def test_job_counts_in_its_phase() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "mxjobs.kubeflow.org", ManualClock())
    figures.phase_changed("a", None, JobPhase.NEW)
    figures.phase_changed("a", JobPhase.NEW, JobPhase.RUNNING)
    assert jobs(metrics) == {("a", "New"): 0, ("a", "Running"): 1}


def test_namespace_without_jobs_leaves_no_series() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "mxjobs.kubeflow.org", ManualClock())
    for namespace in ("a", "b"):
        figures.phase_changed(namespace, None, JobPhase.NEW)
    figures.phase_changed("a", None, JobPhase.RUNNING)
    figures.phase_changed("a", JobPhase.NEW, None)
    assert ("a", "Running") in jobs(metrics)
    figures.phase_changed("a", JobPhase.RUNNING, None)
    assert jobs(metrics) == {("b", "New"): 1}


def test_deletion_counts_in_training_operators_metric_if_the_job_was_created() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "tfjobs.kubeflow.org", ManualClock(), "tensorflow")
    for phase in (JobPhase.NEW, JobPhase.RUNNING):
        figures.phase_changed("a", None, phase)
        figures.phase_changed("a", phase, None)
    name, labels = "training_operator_jobs_deleted_total", {"framework": "tensorflow"}
    assert metrics.registry.get_sample_value(name, {"job_namespace": "a", **labels}) == 1


def written(figures: JobMetrics, job: Job, *, for_mpi_operator: bool = False, **status: Any) -> Job:
    """Return the job with a status that was just written."""
    new = attrs.evolve(job.status, **status)
    write = StatusWrite(job, new, for_mpi_operator=for_mpi_operator)
    figures.status_written(write, ObjectMeta(), NOW)
    return attrs.evolve(job, status=new)


def test_job_whose_launcher_is_a_job_counts_under_mpi_operators_names_alone() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "mpijobs.kubeflow.org", ManualClock(), "mpi")
    count = partial(written, figures, for_mpi_operator=True)
    for state in (JobState.SUCCEEDED, JobState.FAILED):
        job = count(make_job(mpi_job()), phase=JobPhase.CREATING)
        job = count(job, phase=JobPhase.RUNNING)
        job = count(job, phase=JobPhase.CLEAN_UP, state=state)
        count(job, phase=JobPhase.DONE, state=state)
    value = metrics.registry.get_sample_value
    assert value("mpi_operator_jobs_created_total") == 2
    assert value("mpi_operator_jobs_successful_total") == 1
    assert value("mpi_operator_jobs_failed_total") == 1
    assert not next(iter(metrics.training_operator_jobs_created_total.collect())).samples


def test_launcher_has_a_series_until_its_job_is_gone() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "mpijobs.kubeflow.org", ManualClock(), "mpi")
    launcher = ObjectKey("ml", "pi-launcher")
    labels = {"launcher": "pi-launcher", "namespace": "ml"}
    figures.launcher_seen(launcher)
    figures.launcher_seen(launcher)
    assert metrics.registry.get_sample_value("mpi_operator_job_info", labels) == 1
    figures.launcher_gone(launcher)
    assert metrics.registry.get_sample_value("mpi_operator_job_info", labels) is None


def test_failure_counts_once_under_its_cause_until_long_after_the_last_job() -> None:
    metrics, clock = Metrics(), ManualClock()
    figures = JobMetrics(metrics, "mxjobs.kubeflow.org", clock)
    figures.phase_changed("ml", None, JobPhase.RUNNING)
    verdict = Verdict(Cause.OUT_OF_MEMORY, Confidence.LOW, "killed", NOW)
    ended = Attempt(0, NOW, NOW, verdict)
    better = attrs.evolve(ended, verdict=attrs.evolve(verdict, confidence=Confidence.HIGH))
    job = written(figures, make_job(), attempts=(ended,))
    job = written(figures, job, attempts=(better, Attempt(1, NOW)))
    job = written(figures, job, attempts=(better, Attempt(1, NOW, NOW)))
    labels = {"kind": "mxjobs.kubeflow.org", "namespace": "ml", "cause": "OutOfMemory"}
    name = "dlctl_job_failures_total"
    assert metrics.registry.get_sample_value(name, labels) == 1
    figures.phase_changed("ml", JobPhase.RUNNING, None)
    for waited_s, expected in ((EMPTY_NAMESPACE_S - 1, 1), (1, None)):
        clock.seconds += waited_s
        figures.phase_changed("other", None, JobPhase.RUNNING)
        assert metrics.registry.get_sample_value(name, labels) == expected


def test_counters_of_a_namespace_stay_while_it_has_jobs() -> None:
    metrics, clock = Metrics(), ManualClock()
    figures = JobMetrics(metrics, "tfjobs.kubeflow.org", clock, "tensorflow")
    name, labels = "training_operator_jobs_deleted_total", {"framework": "tensorflow"}
    for namespace in ("left", "used"):
        figures.phase_changed(namespace, None, JobPhase.RUNNING)
        figures.phase_changed(namespace, JobPhase.RUNNING, None)
    clock.seconds += EMPTY_NAMESPACE_S - 1
    figures.phase_changed("used", None, JobPhase.RUNNING)
    clock.seconds += EMPTY_NAMESPACE_S
    figures.phase_changed("used", None, JobPhase.RUNNING)
    counted = [
        metrics.registry.get_sample_value(name, {"job_namespace": namespace, **labels})
        for namespace in ("left", "used")
    ]
    assert counted == [None, 1]
