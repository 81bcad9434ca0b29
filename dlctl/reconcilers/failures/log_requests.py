"""The logs that may show more about the end of an attempt than the pods' statuses. Pure."""

import datetime
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import UID, ObjectKey
from dlctl.api.objects.pods import ContainerStateTerminated
from dlctl.api.status.job_status import JobPhase
from dlctl.reconcilers.failures.ended_runs import EndedRun, ended_runs
from dlctl.reconcilers.failures.node_evidence import api_evidence
from dlctl.reconcilers.failures.recorded_runs import is_recorded, new_runs
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.observe import Observed

# In these phases, no verdict is given.
_IDLE_PHASES: Final = frozenset(
    {JobPhase.CLEAN_UP, JobPhase.DONE, JobPhase.FAILED, JobPhase.RESTARTING}
)


@attrs.frozen
class LogTailRequest:
    """One run of a container, of which the log is requested."""

    pod: ObjectKey
    uid: UID
    container: str
    end: ContainerStateTerminated
    # The kubelet has run the container again since, so the log is that of the previous run.
    is_previous: bool = attrs.field(default=False, eq=False)


@attrs.frozen
class LogRequests:
    """The logs to read of one job, those of the earliest ends first."""

    # Logs of runs that end the attempt, which is not recorded before they are read.
    new: Sequence[LogTailRequest] = ()
    # Logs of runs that ended soon after the recorded end of the attempt.
    late: Sequence[LogTailRequest] = ()

    @property
    def all(self) -> tuple[LogTailRequest, ...]:
        return (*self.late, *self.new)


def log_requests(
    job: Job,
    observed: Observed,
    max_count: int,
    now: datetime.datetime,
    known: Collection[UID] = frozenset(),
) -> LogRequests:
    """Return the earliest failed runs of a job's last attempt, at most ``max_count`` of each sort.

    Where the pod's status or its node proves the cause, the log is not needed. Of runs that ended
    in the same second, the ``known`` pods come first: their logs have been requested.
    """
    if job.run_policy.suspended or job.status.phase in _IDLE_PHASES:
        return LogRequests()
    attempts = job.status.attempts
    runs = sorted(
        ended_runs(job, observed, now),
        key=lambda run: (run.time, run.failed_replica.pod.metadata.uid not in known),
    )
    current = [run for run in runs if not is_recorded(run, attempts[:-1])]
    new = new_runs(job, current, attempts, RunJudge(job, now))
    late = [run for run in current if is_recorded(run, attempts)]
    return LogRequests(
        new=tuple(islice(_requests(job, observed, new), max_count)),
        late=tuple(islice(_requests(job, observed, late), max_count)),
    )


def _requests(job: Job, observed: Observed, runs: Sequence[EndedRun]) -> Iterator[LogTailRequest]:
    lost_nodes = observed.children.nodes.lost
    for run in runs:
        failed = run.failed_replica
        spec = job.replica_spec(failed.replica.type)
        container = failed.failed_container(spec.container) if spec else None
        if container is None or failed.termination is None or failed.node in lost_nodes:
            continue
        if api_evidence(failed, container.end.message or ""):
            continue
        metadata = failed.pod.metadata
        yield LogTailRequest(
            metadata.key, metadata.uid, container.name, container.end, container.is_previous
        )
