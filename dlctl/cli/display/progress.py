"""Progress of a job, replica by replica, as a value. Pure: views show it and compare two of it."""

import datetime
from collections.abc import Sequence

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pods import Pod
from dlctl.api.status import conditions
from dlctl.api.status.job_status import Failure, JobPhase, JobState, JobStatus
from dlctl.api.status.verdict import Attempt
from dlctl.cli.display.observed_replicas import observed_replicas
from dlctl.cli.display.replica_progress import ReplicaProgress, replica_progress
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError


@attrs.frozen
class JobProgress:
    """One job: its status, and its replicas in the order of the spec."""

    kind: str
    key: ObjectKey
    phase: JobPhase = JobPhase.NEW
    state: JobState = JobState.UNKNOWN
    reason: str = ""
    failure: Failure | None = None
    # Empty if the job has never failed.
    attempts: tuple[Attempt, ...] = ()
    # Why the job does not run, as the controller reports it.
    notice: str = ""
    replicas: tuple[ReplicaProgress, ...] = ()
    is_deleted: bool = False
    # Since it was submitted, until it finished.
    elapsed_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def is_finished(self) -> bool:
        return self.is_deleted or self.phase in (JobPhase.DONE, JobPhase.FAILED)

    @property
    def has_succeeded(self) -> bool:
        return not self.is_deleted and self.is_finished and self.state is JobState.SUCCEEDED

    @property
    def is_settled(self) -> bool:
        """Return whether nothing about the job is going to change any more."""
        return self.is_finished and all(replica.is_settled for replica in self.replicas)

    @property
    def never_started(self) -> list[str]:
        """Return the replicas whose programs have not run."""
        return [replica.name for replica in self.replicas if replica.never_started]

    @property
    def failed_replicas(self) -> list[str]:
        """Return the replicas whose programs have failed and are not restarted."""
        return [replica.name for replica in self.replicas if replica.has_failed]

    def replica(self, name: str) -> ReplicaProgress | None:
        return next((r for r in self.replicas if r.name == name), None)


def job_progress(
    kind: Kind, obj: JobObject, pods: Sequence[Pod], before: JobProgress, now: datetime.datetime
) -> JobProgress:
    """Return the progress of a job, given its pods and the previous progress.

    Pods that are not the job's own are those of its launcher's batch/v1 Job.
    """
    decoded = kind.decode(obj)
    status = decoded.dialect.read_status(decoded)
    seen = attrs.evolve(
        before,
        phase=status.phase,
        state=status.state,
        reason=status.reason,
        failure=status.failure,
        attempts=status.attempts,
        notice=_notice(status),
    )
    try:
        job = kind.read(decoded)
    except InvalidJobError:
        return seen
    replicas = tuple(
        replica_progress(job, one, before.replica(str(one.replica)))
        for one in observed_replicas(job, pods, now)
    )
    return attrs.evolve(seen, replicas=replicas)


def _notice(status: JobStatus) -> str:
    if waiting := conditions.find(status.conditions, conditions.WAITING):
        return waiting.message
    last = status.conditions[-1] if status.conditions else None
    return last.message if last and last.type == conditions.RESTARTING else ""
