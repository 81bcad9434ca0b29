"""Counting jobs by phase: the series of a namespace last as long as it has jobs."""

from dlctl.api.status import JobPhase
from dlctl.metrics import Metrics
from dlctl.reconcilers.job_metrics import JobMetrics


def jobs(metrics: Metrics) -> dict[tuple[str, str], float]:
    (family,) = metrics.dlctl_jobs.collect()
    return {(s.labels["namespace"], s.labels["phase"]): s.value for s in family.samples}


def test_job_counts_in_its_phase() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "mxjobs.kubeflow.org")
    figures.phase_changed("a", None, JobPhase.NEW)
    figures.phase_changed("a", JobPhase.NEW, JobPhase.RUNNING)
    assert jobs(metrics) == {("a", "New"): 0, ("a", "Running"): 1}


def test_namespace_without_jobs_leaves_no_series() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "mxjobs.kubeflow.org")
    for namespace in ("a", "b"):
        figures.phase_changed(namespace, None, JobPhase.NEW)
    figures.phase_changed("a", None, JobPhase.RUNNING)
    figures.phase_changed("a", JobPhase.NEW, None)
    assert ("a", "Running") in jobs(metrics)
    figures.phase_changed("a", JobPhase.RUNNING, None)
    assert jobs(metrics) == {("b", "New"): 1}


def test_deletion_counts_in_training_operators_metric_if_the_job_was_created() -> None:
    metrics = Metrics()
    figures = JobMetrics(metrics, "tfjobs.kubeflow.org", "tensorflow")
    for phase in (JobPhase.NEW, JobPhase.RUNNING):
        figures.phase_changed("a", None, phase)
        figures.phase_changed("a", phase, None)
    name, labels = "training_operator_jobs_deleted_total", {"framework": "tensorflow"}
    assert metrics.registry.get_sample_value(name, {"job_namespace": "a", **labels}) == 1
