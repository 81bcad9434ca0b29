"""How many replicas of a type are in which state, while a job runs and when it has ended. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.status import Failure, JobState, ReplicaStatus
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation

_STATES: Final[Mapping[Situation, JobState]] = {
    Situation.MISSING: JobState.UNKNOWN,
    Situation.PENDING: JobState.UNKNOWN,
    Situation.TERMINATING: JobState.UNKNOWN,
    Situation.RUNNING: JobState.RUNNING,
    Situation.SUCCEEDED: JobState.SUCCEEDED,
    Situation.BROKEN: JobState.FAILED,
    Situation.SPENT: JobState.FAILED,
}
_WAITING: Final = JobState.UNKNOWN


def replica_status(job: Job, spec: ReplicaSpec, observed: Observed) -> ReplicaStatus:
    """Return how the replicas of one type fare."""
    mine = [o for o in observed.replicas if o.replica.type == spec.type]
    counts = Counter(_counted_as(job, o) for o in mine)
    done = frozenset(o.replica.index for o in mine if o.situation is Situation.SUCCEEDED)
    told = job.reporting.tells_states
    return ReplicaStatus(
        type=spec.type,
        state=_common_state(counts, spec.replicas) if told else JobState.UNKNOWN,
        counts={s: counts[s] for s in JobState if counts[s] and (told or s is not _WAITING)},
        completed=done | job.status.completed(spec.type),
        selector=spec.selector,
    )


def at_end(job: Job, replica: ReplicaStatus, failure: Failure | None) -> ReplicaStatus:
    """Return how the replicas of one type are counted of a job that has just ended."""
    uncounted = job.reporting.uncounted_at_end
    if failure is None:
        ended_by_others = True
    else:
        ended_by_others = bool(failure.replica) and blamed(failure) not in uncounted
    if replica.type in uncounted and ended_by_others:
        return attrs.evolve(replica, counts={})
    return replica if failure else _succeeded(job, replica)


def blamed(failure: Failure) -> str:
    """Return the type of the replica whose failure it is; none if it is the job's as a whole."""
    return failure.replica.rpartition("-")[0]


def _counted_as(job: Job, observed: ObservedReplica) -> JobState:
    if observed.situation is Situation.LOST:
        return job.reporting.lost
    in_between = observed.restarting or observed.phase_due_s
    return JobState.RUNNING if in_between else _STATES[observed.situation]


def _succeeded(job: Job, replica: ReplicaStatus) -> ReplicaStatus:
    """Count what still runs when its job succeeds as succeeded: nobody looks at it again."""
    counts = dict(replica.counts)
    running = counts.pop(JobState.RUNNING, 0)
    if not running:
        return replica
    counts[JobState.SUCCEEDED] = counts.get(JobState.SUCCEEDED, 0) + running
    if not job.reporting.tells_states:
        return attrs.evolve(replica, counts=counts)
    state = _common_state(counts, sum(counts.values()))
    return attrs.evolve(replica, counts=counts, state=state)


def _common_state(counts: Mapping[JobState, int], replicas: int) -> JobState:
    """Return the state of all replicas of a type as mx-operator derives it."""
    for state in (JobState.FAILED, JobState.RUNNING):
        if counts.get(state):
            return state
    if replicas and counts.get(JobState.SUCCEEDED) == replicas:
        return JobState.SUCCEEDED
    return JobState.UNKNOWN
