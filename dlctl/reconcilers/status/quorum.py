"""Whether an elastic job has its quorum: a launcher and enough workers. Pure."""

import datetime

from dlctl.api.job import WORKER, Job, Replica
from dlctl.api.status.job_status import Failure, JobPhase
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState


def unmet(job: Job, observed: Observed, now: datetime.datetime) -> list[Failure]:
    """Return the failures by which a job cannot start or continue; empty if it can."""
    if job.elasticity is None or job.status.membership is None:
        return []
    launcher = next(
        (o for o in observed.replicas if job.success_policy.decides_running(o.replica)), None
    )
    if launcher is None or launcher.state is not ReplicaState.MISSING:
        return []
    if job.status.phase is JobPhase.RUNNING and job.elasticity.requires_launcher:
        message = "its pod was deleted, and its restart policy is Never"
        pod = job.child_name(launcher.replica)
        return [Failure(str(launcher.replica), pod, "Deleted", message, now)]
    return [] if _can_reach_min(job) else _causes(observed, now)


def _can_reach_min(job: Job) -> bool:
    """Return whether enough workers exist or will exist."""
    membership, elasticity = job.status.membership, job.elasticity
    if membership is None or elasticity is None:
        return True
    left = [
        i for i in membership.members if i not in membership.retired or _will_be_replaced(job, i)
    ]
    return len(left) >= elasticity.min_replicas


def _will_be_replaced(job: Job, worker: int) -> bool:
    return str(Replica(WORKER, worker)) in job.status.restarts


def _causes(observed: Observed, now: datetime.datetime) -> list[Failure]:
    return [_failure(o, now) for o in observed.replicas if o.state is ReplicaState.RETIRED]


def _failure(one: ObservedReplica, now: datetime.datetime) -> Failure:
    pod = one.pod.metadata.name if one.pod else ""
    return one.failure or Failure(str(one.replica), pod, "Deleted", "it was deleted", now)
