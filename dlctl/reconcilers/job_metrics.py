"""The figures of jobs as Prometheus metrics, fed by what their statuses come to say.

Counted once a status is written, so a write that is tried again counts once.
"""

import datetime
from collections import Counter

import attrs

from dlctl.api import conditions
from dlctl.api.job import Job
from dlctl.api.meta import ObjectMeta
from dlctl.api.status import JobPhase, JobStatus, Restart
from dlctl.metrics import Metrics


@attrs.frozen
class JobFigures:
    """Feeds the ``dlctl_job*`` metrics of one kind; its labels never name a job."""

    metrics: Metrics
    kind: str
    # How many jobs there are in each namespace, whatever their phase.
    _jobs: Counter[str] = attrs.field(init=False, factory=Counter)

    def moved(self, namespace: str, old: JobPhase | None, new: JobPhase | None) -> None:
        """Count a job in its new phase and no more in its old one; None is no job."""
        if old == new:
            return
        for phase, change in ((old, -1), (new, 1)):
            if phase is not None:
                self.metrics.dlctl_jobs.labels(self.kind, namespace, _name(phase)).inc(change)
        self._jobs[namespace] += (old is None) - (new is None)
        if not self._jobs[namespace]:
            self._drop(namespace)

    def wrote(self, job: Job, about: ObjectMeta, new: JobStatus, now: datetime.datetime) -> None:
        """Count what a status that was just written says for the first time."""
        old = job.status
        for name, restart in new.restarts.items():
            if old.restarts.get(name) != restart:
                self._restarted(restart, old.restarts.get(name))
        if new.phase is JobPhase.RUNNING and old.phase is JobPhase.CREATING:
            # How long it was suspended is nobody's figure.
            suspended = any(c.type == conditions.SUSPENDED for c in new.conditions)
            if about.creation_timestamp and not suspended:
                waited_s = (now - about.creation_timestamp).total_seconds()
                self.metrics.dlctl_job_start_duration_seconds.labels(self.kind).observe(waited_s)
        if new.completion_time and not old.completion_time and new.start_time:
            ran_s = (new.completion_time - new.start_time).total_seconds()
            result = new.state.value.lower()
            self.metrics.dlctl_job_run_duration_seconds.labels(self.kind, result).observe(ran_s)

    def _drop(self, namespace: str) -> None:
        # Namespaces come and go, and each would leave its series behind.
        del self._jobs[namespace]
        for phase in JobPhase:
            self.metrics.dlctl_jobs.remove(self.kind, namespace, _name(phase))

    def _restarted(self, restart: Restart, before: Restart | None) -> None:
        own = restart.failures > (before.failures if before else 0)
        code = "" if restart.exit_code is None else str(restart.exit_code)
        cause = "failure" if own else "disruption"
        self.metrics.dlctl_job_restarts_total.labels(self.kind, cause, code).inc()


def _name(phase: JobPhase) -> str:
    return phase.value or "New"
