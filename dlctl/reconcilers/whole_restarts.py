"""Running a whole job again: all is taken down first, and made anew after a back-off. Pure."""

import datetime

import attrs

from dlctl.api import conditions
from dlctl.api.job import Job
from dlctl.api.status import JobPhase, JobStatus
from dlctl.reconcilers import restarts
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation
from dlctl.reconcilers.restarts import RestartBackoff
from dlctl.reconcilers.status import Note


def is_asked(job: Job, observed: Observed) -> bool:
    """Tell whether what decides the job has ended in a way that a run of the whole may better."""
    again = job.elasticity is not None and job.elasticity.whole_restarts > 0
    return again and _lost(job, observed) is not None


def is_used_up(job: Job) -> bool:
    """Tell whether the job has been run again as often as it may."""
    return job.elasticity is None or job.status.whole_restarts >= job.elasticity.whole_restarts


def begun(
    job: Job, status: JobStatus, observed: Observed, now: datetime.datetime
) -> tuple[JobStatus, Note]:
    """Return the status of a job that is taken down to be made again."""
    created = [c for c in status.conditions if c.type == conditions.CREATED]
    roster = status.roster
    if roster is not None:
        roster = roster.undialled()
    deciders = {str(replica) for replica in job.deciders.run}
    lost = _lost(job, observed)
    cause = lost.ending.message if lost and lost.ending else "it has ended"
    count = status.whole_restarts + 1
    message = f"{job.resource.kind} {job.key} is run again, for the {count}. time: {cause}"
    return (
        attrs.evolve(
            status,
            phase=JobPhase.RESTARTING,
            conditions=tuple(created),
            replica_statuses=(),
            restarts={n: r for n, r in status.restarts.items() if n in deciders},
            whole_restarts=count,
            roster=roster,
        ),
        Note("Warning", f"{job.resource.kind}Restarting", message),
    )


def left_s(job: Job, backoff: RestartBackoff, now: datetime.datetime) -> float:
    """Return the seconds until the job may be made again."""
    waits = [restarts.due(job.status.restarts.get(str(r)), backoff) for r in job.deciders.run]
    return max(((due - now).total_seconds() for due in waits if due), default=0.0)


def _lost(job: Job, observed: Observed) -> ObservedReplica | None:
    found = (o for o in observed.replicas if o.replica in job.deciders.run)
    return next((o for o in found if o.situation is Situation.LOST), None)
