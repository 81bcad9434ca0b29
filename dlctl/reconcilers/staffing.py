"""Whether a job that scales has who it takes: a launcher, and workers enough. Pure."""

import datetime

from dlctl.api.elastic import WORKER
from dlctl.api.job import Job, Replica
from dlctl.api.status import Failure, JobPhase
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation


def lacking(job: Job, observed: Observed, now: datetime.datetime) -> list[Failure]:
    """Return why a job cannot begin, or go on, with those it has left."""
    if job.elasticity is None or job.status.roster is None:
        return []
    dialler = next((o for o in observed.replicas if o.replica in job.deciders.run), None)
    if dialler is None or dialler.situation is not Situation.MISSING:
        return []
    if job.status.phase is JobPhase.RUNNING and job.elasticity.needs_launcher:
        message = "its pod was deleted, and its restart policy is Never"
        pod = job.child_name(dialler.replica)
        return [Failure(str(dialler.replica), pod, "Deleted", message, now)]
    return [] if _may_begin(job) else _causes(observed, now)


def _may_begin(job: Job) -> bool:
    """Tell whether enough workers are left, or are yet to come."""
    roster, elasticity = job.status.roster, job.elasticity
    if roster is None or elasticity is None:
        return True
    left = [i for i in roster.members if i not in roster.spent or _returns(job, i)]
    return len(left) >= elasticity.least


def _returns(job: Job, worker: int) -> bool:
    return str(Replica(WORKER, worker)) in job.status.restarts


def _causes(observed: Observed, now: datetime.datetime) -> list[Failure]:
    return [_failure(o, now) for o in observed.replicas if o.situation is Situation.SPENT]


def _failure(one: ObservedReplica, now: datetime.datetime) -> Failure:
    pod = one.pod.metadata.name if one.pod else ""
    return one.failure or Failure(str(one.replica), pod, "Deleted", "it was deleted", now)
