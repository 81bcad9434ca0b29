"""Restarts of a whole job: delete everything, then create it again after a back-off. Pure."""

import datetime

import attrs

from dlctl.api import conditions
from dlctl.api.job import Job
from dlctl.api.status import JobPhase, JobStatus
from dlctl.backoff import Backoff
from dlctl.reconcilers.event_note import EventNote
from dlctl.reconcilers.lifecycle import replica_restarts
from dlctl.reconcilers.observe import Observed, ObservedReplica, ReplicaState


def should_restart(job: Job, observed: Observed) -> bool:
    """Return whether one of ``running_replicas`` failed in a way that a restart may fix."""
    may_restart = job.elasticity is not None and job.elasticity.job_restart_limit > 0
    return may_restart and _failed_running_replica(job, observed) is not None


def limit_reached(job: Job) -> bool:
    """Return whether the job has reached its restart limit."""
    return job.elasticity is None or job.status.job_restarts >= job.elasticity.job_restart_limit


def restarting_status(
    job: Job, status: JobStatus, observed: Observed, now: datetime.datetime
) -> tuple[JobStatus, EventNote]:
    """Return the status of a job that is about to be restarted as a whole."""
    created = [c for c in status.conditions if c.type == conditions.CREATED]
    membership = status.membership
    if membership is not None:
        membership = membership.reset()
    running = {str(replica) for replica in job.success_policy.running_replicas}
    failed = _failed_running_replica(job, observed)
    cause = failed.termination.message if failed and failed.termination else "it has ended"
    count = status.job_restarts + 1
    message = f"{job.resource.kind} {job.key} restarted (attempt {count}): {cause}"
    return (
        attrs.evolve(
            status,
            phase=JobPhase.RESTARTING,
            conditions=tuple(created),
            replica_statuses=(),
            restarts={n: r for n, r in status.restarts.items() if n in running},
            job_restarts=count,
            membership=membership,
        ),
        EventNote("Warning", f"{job.resource.kind}Restarting", message),
    )


def backoff_left_s(job: Job, backoff: Backoff, now: datetime.datetime) -> float:
    """Return the seconds until the job may be created again."""
    waits = [
        replica_restarts.next_restart_at(job.status.restarts.get(str(r)), backoff)
        for r in job.success_policy.running_replicas
    ]
    return max(((due - now).total_seconds() for due in waits if due), default=0.0)


def _failed_running_replica(job: Job, observed: Observed) -> ObservedReplica | None:
    found = (o for o in observed.replicas if o.replica in job.success_policy.running_replicas)
    return next((o for o in found if o.state is ReplicaState.FAILED_RETRYABLE), None)
