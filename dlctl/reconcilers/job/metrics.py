"""Prometheus metrics of jobs, updated from their statuses.

Updated after a status is written, so a repeated write counts once.
"""

import datetime
from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs
import prometheus_client

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey, ObjectMeta
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, RestartRecord
from dlctl.api.status.verdict import Cause
from dlctl.clock import Clock
from dlctl.metrics import Metrics
from dlctl.reconcilers.job.status_write import StatusWrite

# How long counters of a namespace without jobs are kept: much longer than between two scrapes.
EMPTY_NAMESPACE_S: Final = 24 * 3600.0
# The largest exit code of a Linux process; a writer of pod statuses may report any number.
_MAX_EXIT_CODE: Final = 255


@attrs.frozen
class JobMetrics:
    """Updates the metrics of one kind of job; no label names a job, except for mpi-operator's.

    Metrics under training-operator's names are updated if ``training_operator_label`` is set.
    Namespaces come and go: the series of those without jobs are removed.
    """

    metrics: Metrics
    kind: str
    clock: Clock
    training_operator_label: str = ""
    # The number of jobs in each namespace, in any phase.
    _count_by_namespace: Counter[str] = attrs.field(init=False, factory=Counter)
    # When namespaces have lost their last job, in this order.
    _empty_since: dict[str, float] = attrs.field(init=False, factory=dict)

    def phase_changed(
        self,
        namespace: str,
        old: JobPhase | None,
        new: JobPhase | None,
        *,
        for_mpi_operator: bool = False,
    ) -> None:
        """Move a job from the gauge of its old phase to that of its new one; None means no job.

        ``for_mpi_operator`` says that the job is not counted under training-operator's names.
        """
        if old == new:
            return
        framework = "" if for_mpi_operator else self.training_operator_label
        # A job without a status was never processed, perhaps because another controller owns it.
        if framework and new is None and old is not JobPhase.NEW:
            self.metrics.training_operator_jobs_deleted_total.labels(namespace, framework).inc()
        for phase, change in ((old, -1), (new, 1)):
            if phase is not None:
                self.metrics.dlctl_jobs.labels(self.kind, namespace, _phase_label(phase)).inc(
                    change
                )
        self._count_by_namespace[namespace] += (old is None) - (new is None)
        self._empty_since.pop(namespace, None)
        if not self._count_by_namespace[namespace]:
            self._remove_gauges(namespace)
            self._empty_since[namespace] = self.clock.monotonic()
        self._remove_old_counters()

    def status_written(
        self, write: StatusWrite, metadata: ObjectMeta, now: datetime.datetime
    ) -> None:
        """Count what a status that was just written reports for the first time."""
        job, old, new = write.job, write.job.status, write.status
        if write.for_mpi_operator:
            self._count_mpi_operator(old, new)
        elif self.training_operator_label:
            self._count_training_operator(job, new)
        for cause in _new_causes(old, new):
            labels = (self.kind, job.key.namespace, cause)
            self.metrics.dlctl_job_failures_total.labels(*labels).inc()
        for name, restart in new.restarts.items():
            if _is_new_restart(restart, old.restarts.get(name)):
                self._count_restart(restart, old.restarts.get(name))
        if new.phase is JobPhase.RUNNING and old.phase.is_before_run:
            # Excludes suspended jobs: their start-up time is meaningless.
            suspended = any(c.type == conditions.SUSPENDED for c in new.conditions)
            if metadata.creation_timestamp and not suspended:
                waited_s = (now - metadata.creation_timestamp).total_seconds()
                self.metrics.dlctl_job_start_duration_seconds.labels(self.kind).observe(waited_s)
        if new.phase is JobPhase.FAILED:
            # An invalid job has never run.
            return
        if new.completion_time and not old.completion_time and new.start_time:
            ran_s = (new.completion_time - new.start_time).total_seconds()
            result = new.state.value.lower()
            self.metrics.dlctl_job_run_duration_seconds.labels(self.kind, result).observe(ran_s)

    def _count_training_operator(self, job: Job, new: JobStatus) -> None:
        """Count under training-operator's names what a written status reports for the first time.

        The old status shows what was counted before, so the next controller counts nothing twice.
        """
        old, metrics = job.status, self.metrics
        labels = (job.key.namespace, self.training_operator_label)
        for counter in _outcome_counters(
            old,
            new,
            created=metrics.training_operator_jobs_created_total,
            successful=metrics.training_operator_jobs_successful_total,
            failed=metrics.training_operator_jobs_failed_total,
        ):
            counter.labels(*labels).inc()
        again = sum(
            _is_new_restart(restart, old.restarts.get(n)) for n, restart in new.restarts.items()
        )
        if again:
            metrics.training_operator_jobs_restarted_total.labels(*labels).inc(again)

    def _count_mpi_operator(self, old: JobStatus, new: JobStatus) -> None:
        """Count under mpi-operator's names, by the same rules as under training-operator's."""
        for counter in _outcome_counters(
            old,
            new,
            created=self.metrics.mpi_operator_jobs_created_total,
            successful=self.metrics.mpi_operator_jobs_successful_total,
            failed=self.metrics.mpi_operator_jobs_failed_total,
        ):
            counter.inc()

    def launcher_seen(self, launcher: ObjectKey) -> None:
        """Report that the Job of a launcher exists."""
        self.metrics.mpi_operator_job_info.labels(launcher.name, launcher.namespace).set(1)

    def launcher_gone(self, launcher: ObjectKey) -> None:
        """Remove the series of a launcher."""
        self.metrics.mpi_operator_job_info.remove(launcher.name, launcher.namespace)

    def status_conflict(self) -> None:
        """Count that another operator has overwritten the status of a job."""
        self.metrics.dlctl_status_conflicts_total.labels(self.kind).inc()

    def _remove_gauges(self, namespace: str) -> None:
        del self._count_by_namespace[namespace]
        for phase in JobPhase:
            self.metrics.dlctl_jobs.remove(self.kind, namespace, _phase_label(phase))

    def _remove_old_counters(self) -> None:
        expired_s = self.clock.monotonic() - EMPTY_NAMESPACE_S
        while self._empty_since:
            namespace, since_s = next(iter(self._empty_since.items()))
            if since_s > expired_s:
                break
            del self._empty_since[namespace]
            for cause in Cause:
                self.metrics.dlctl_job_failures_total.remove(self.kind, namespace, cause)
            if self.training_operator_label:
                self._remove_training_operator_counters(namespace)

    def _remove_training_operator_counters(self, namespace: str) -> None:
        metrics = self.metrics
        for counter in (
            metrics.training_operator_jobs_created_total,
            metrics.training_operator_jobs_deleted_total,
            metrics.training_operator_jobs_failed_total,
            metrics.training_operator_jobs_restarted_total,
            metrics.training_operator_jobs_successful_total,
        ):
            counter.remove(namespace, self.training_operator_label)

    def _count_restart(self, restart: RestartRecord, before: RestartRecord | None) -> None:
        is_failure = restart.failures > (before.failures if before else 0)
        code = _exit_code_label(restart.exit_code)
        cause = "failure" if is_failure else "disruption"
        self.metrics.dlctl_job_restarts_total.labels(self.kind, cause, code).inc()


def _outcome_counters(
    old: JobStatus,
    new: JobStatus,
    *,
    created: prometheus_client.Counter,
    successful: prometheus_client.Counter,
    failed: prometheus_client.Counter,
) -> Iterator[prometheus_client.Counter]:
    """Yield the counters of what a written status reports for the first time."""
    if old.phase is JobPhase.NEW and new.phase is not JobPhase.NEW:
        yield created
    if _result(old) is None and (result := _result(new)):
        yield successful if result is JobState.SUCCEEDED else failed


def _new_causes(old: JobStatus, new: JobStatus) -> list[Cause]:
    """Return the causes of the attempts that have ended since; a better verdict counts no more."""
    ended = {one.number for one in old.attempts if one.end_time is not None}
    new_attempts = (one for one in new.attempts if one.number not in ended)
    return [one.verdict.cause for one in new_attempts if one.verdict is not None]


def _is_new_restart(restart: RestartRecord, before: RestartRecord | None) -> bool:
    """Return whether a replica has ended again, not just restarted in place."""
    if before is None:
        return restart.consecutive_ends > 0
    return (restart.consecutive_ends, restart.finished_at) != (
        before.consecutive_ends,
        before.finished_at,
    )


def _exit_code_label(code: int | None) -> str:
    """Return the label of an exit code, of which there is a bounded number."""
    if code is None:
        return ""
    return str(code) if 0 <= code <= _MAX_EXIT_CODE else "other"


def _result(status: JobStatus) -> JobState | None:
    """Return how the job ended, or None; invalid jobs count as failed."""
    return status.state if status.phase.has_ended else None


def _phase_label(phase: JobPhase) -> str:
    return phase.value or "New"
