"""The figures of jobs as Prometheus metrics, fed by what their statuses come to say.

Counted once a status is written, so a write that is tried again counts once.
"""

import datetime
from collections import Counter

import attrs

from dlctl.api import conditions
from dlctl.api.job import Job
from dlctl.api.meta import ObjectMeta
from dlctl.api.status import JobPhase, JobState, JobStatus, RestartRecord
from dlctl.metrics import Metrics


@attrs.frozen
class JobMetrics:
    """Feeds the metrics of one kind of job; no label names a job.

    Those under training-operator's names are fed if they have a label for the kind.
    """

    metrics: Metrics
    kind: str
    training_operator_label: str = ""
    # How many jobs there are in each namespace, whatever their phase.
    _count_by_namespace: Counter[str] = attrs.field(init=False, factory=Counter)

    def phase_changed(self, namespace: str, old: JobPhase | None, new: JobPhase | None) -> None:
        """Count a job in its new phase and no more in its old one; None is no job."""
        if old == new:
            return
        framework = self.training_operator_label
        # Without a status it was never taken up: somebody else's, perhaps.
        if framework and new is None and old is not JobPhase.NEW:
            self.metrics.training_operator_jobs_deleted_total.labels(namespace, framework).inc()
        for phase, change in ((old, -1), (new, 1)):
            if phase is not None:
                self.metrics.dlctl_jobs.labels(self.kind, namespace, _phase_label(phase)).inc(
                    change
                )
        self._count_by_namespace[namespace] += (old is None) - (new is None)
        if not self._count_by_namespace[namespace]:
            self._remove_namespace(namespace)

    def status_written(
        self, job: Job, metadata: ObjectMeta, new: JobStatus, now: datetime.datetime
    ) -> None:
        """Count what a status that was just written says for the first time."""
        old = job.status
        self.count_training_operator(job.key.namespace, old, new)
        for name, restart in new.restarts.items():
            if _is_new_restart(restart, old.restarts.get(name)):
                self._count_restart(restart, old.restarts.get(name))
        if new.phase is JobPhase.RUNNING and old.phase is JobPhase.CREATING:
            # How long it was suspended is nobody's figure.
            suspended = any(c.type == conditions.SUSPENDED for c in new.conditions)
            if metadata.creation_timestamp and not suspended:
                waited_s = (now - metadata.creation_timestamp).total_seconds()
                self.metrics.dlctl_job_start_duration_seconds.labels(self.kind).observe(waited_s)
        if new.completion_time and not old.completion_time and new.start_time:
            ran_s = (new.completion_time - new.start_time).total_seconds()
            result = new.state.value.lower()
            self.metrics.dlctl_job_run_duration_seconds.labels(self.kind, result).observe(ran_s)

    def count_training_operator(self, namespace: str, old: JobStatus, new: JobStatus) -> None:
        """Count under training-operator's names what the status just written says first.

        The status itself tells what was counted before, so that nothing is counted again by the
        next controller.
        """
        framework = self.training_operator_label
        if not framework:
            return
        metrics, labels = self.metrics, (namespace, framework)
        if old.phase is JobPhase.NEW and new.phase is not JobPhase.NEW:
            metrics.training_operator_jobs_created_total.labels(*labels).inc()
        if _result(old) is None and (result := _result(new)):
            good = metrics.training_operator_jobs_successful_total
            bad = metrics.training_operator_jobs_failed_total
            (good if result is JobState.SUCCEEDED else bad).labels(*labels).inc()
        again = sum(
            _is_new_restart(restart, old.restarts.get(n)) for n, restart in new.restarts.items()
        )
        if again:
            metrics.training_operator_jobs_restarted_total.labels(*labels).inc(again)

    def status_conflict(self) -> None:
        """Count that another operator has overwritten the status of a job once more."""
        self.metrics.dlctl_status_conflicts_total.labels(self.kind).inc()

    def _remove_namespace(self, namespace: str) -> None:
        # Namespaces come and go, and each would leave its series behind.
        del self._count_by_namespace[namespace]
        for phase in JobPhase:
            self.metrics.dlctl_jobs.remove(self.kind, namespace, _phase_label(phase))

    def _count_restart(self, restart: RestartRecord, before: RestartRecord | None) -> None:
        is_failure = restart.failures > (before.failures if before else 0)
        code = "" if restart.exit_code is None else str(restart.exit_code)
        cause = "failure" if is_failure else "disruption"
        self.metrics.dlctl_job_restarts_total.labels(self.kind, cause, code).inc()


def _is_new_restart(restart: RestartRecord, before: RestartRecord | None) -> bool:
    """Tell whether a replica has ended once more; restarts in place may have been added alone."""
    if before is None:
        return restart.attempts > 0
    return (restart.attempts, restart.finished_at) != (before.attempts, before.finished_at)


def _result(status: JobStatus) -> JobState | None:
    """Return how the job has ended, if it has; one that cannot be read is a failure too."""
    ended = status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE, JobPhase.FAILED)
    return status.state if ended else None


def _phase_label(phase: JobPhase) -> str:
    return phase.value or "New"
