"""How many replicas of a type are in which state, during and after a run. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import LAUNCHER, Job, ReplicaSpec, replica_type
from dlctl.api.objects.pods import PodPhase
from dlctl.api.status.job_status import Failure, JobState, ReplicaStatus
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState

_STATES: Final[Mapping[ReplicaState, JobState]] = {
    ReplicaState.MISSING: JobState.UNKNOWN,
    ReplicaState.PENDING: JobState.UNKNOWN,
    ReplicaState.TERMINATING: JobState.UNKNOWN,
    ReplicaState.RUNNING: JobState.RUNNING,
    ReplicaState.SUCCEEDED: JobState.SUCCEEDED,
    ReplicaState.FAILED_PERMANENT: JobState.FAILED,
    ReplicaState.RETIRED: JobState.FAILED,
}
_WAITING: Final = JobState.UNKNOWN


def replica_status(job: Job, spec: ReplicaSpec, observed: Observed) -> ReplicaStatus:
    """Return the status of the replicas of one type."""
    replicas = [o for o in observed.replicas if o.replica.type == spec.type]
    counts = Counter(_state_of(job, o) for o in replicas)
    if observed.launcher is not None and spec.type == LAUNCHER:
        # Its failed pods are attempts of one replica. With a failure policy, its Job reports the
        # only one later than the pod itself.
        seen = counts[JobState.FAILED] if job.has_failure_policy else 0
        counts[JobState.FAILED] = max(seen, observed.launcher.failed_count)
    done = frozenset(o.replica.index for o in replicas if o.state is ReplicaState.SUCCEEDED)
    known = job.status.completed_indexes(spec.type)
    if spec.explicit_indexes is None:
        # Replicas that are removed, and added again, are new ones.
        known = frozenset(index for index in known if index < spec.replicas)
    shows_states = job.messages.emits_replica_states
    return ReplicaStatus(
        type=spec.type,
        state=_common_state(counts, spec.replicas) if shows_states else JobState.UNKNOWN,
        count_by_state={
            s: counts[s] for s in JobState if counts[s] and (shows_states or s is not _WAITING)
        },
        completed_indexes=done | known,
        label_selector=spec.label_selector,
    )


def _running_or_ended(job: Job, observed: Observed) -> Counter[str]:
    """Return how many replicas of each type run, or have ended since the status was written."""
    before = {each.type: each for each in job.status.replica_statuses}
    counts, failed = Counter[str](), Counter[str]()
    for one in observed.replicas:
        type_, state = one.replica.type, _state_of(job, one)
        known = before.get(type_)
        is_done = bool(known and one.replica.index in known.completed_indexes)
        if state is JobState.FAILED:
            failed[type_] += 1
        elif state is JobState.RUNNING or (state is JobState.SUCCEEDED and not is_done):
            counts[type_] += 1
    for type_, count in failed.items():
        known = before.get(type_)
        failed_before = known.count_by_state.get(JobState.FAILED, 0) if known else 0
        counts[type_] += max(0, count - failed_before)
    return counts


def types_with_fewer_running(job: Job, observed: Observed) -> frozenset[str]:
    """Return the types that have lost a running replica; others may have been scaled up."""
    return types_with_more_before(job, _running_or_ended(job, observed))


def types_with_more_before(job: Job, counts: Counter[str], surplus: int = 0) -> frozenset[str]:
    """Return the types of which more replicas ran when the status was written than these.

    The ``surplus`` replicas may be of any type.
    """
    before = {each.type: each.count_by_state for each in job.status.replica_statuses}
    return frozenset(
        type_
        for type_, count in before.items()
        if count.get(JobState.RUNNING, 0) > counts[type_] + surplus
    )


def suspended_replica_status(replica: ReplicaStatus, observed: Observed) -> ReplicaStatus:
    """Return the status of the replicas of one type when their job is suspended."""
    launcher = observed.launcher if replica.type == LAUNCHER else None
    failed_count = launcher.failed_count if launcher else 0
    counts = {JobState.FAILED: failed_count} if failed_count else {}
    return ReplicaStatus(
        replica.type, JobState.UNKNOWN, counts, label_selector=replica.label_selector
    )


def final_replica_status(
    job: Job, replica: ReplicaStatus, failure: Failure | None
) -> ReplicaStatus:
    """Return the status of the replicas of one type when their job has just ended."""
    uncounted = job.messages.uncounted_after_finish
    if failure is None or job.launcher_job is not None:
        another_type_ended_it = True
    else:
        another_type_ended_it = (
            bool(failure.replica) and replica_type(failure.replica) not in uncounted
        )
    if replica.type in uncounted and another_type_ended_it:
        return attrs.evolve(replica, count_by_state={})
    if failure is None and job.messages.counts_running_as_succeeded:
        return _count_as_succeeded(replica)
    return replica


def _state_of(job: Job, observed: ObservedReplica) -> JobState:
    if observed.state is ReplicaState.FAILED_RETRYABLE:
        return job.messages.restarting_state
    if observed.state is ReplicaState.RETIRED and _has_succeeded(observed):
        return JobState.SUCCEEDED
    in_between = observed.is_restarting or _is_ending(observed)
    return JobState.RUNNING if in_between else _STATES[observed.state]


def _is_ending(observed: ObservedReplica) -> bool:
    """Return whether the phase of a pod is awaited whose program has run, and ended."""
    pod = observed.pod
    # Init containers run in the phase Pending.
    return pod is not None and bool(observed.phase_wait_s) and pod.phase is not PodPhase.PENDING


def _has_succeeded(retired: ObservedReplica) -> bool:
    """Return whether a worker that is not replaced exited 0, and not because it was deleted."""
    end, pod = retired.termination, retired.pod
    if end is not None and end.exit_class is ExitClass.SUCCESS:
        return True
    return pod is not None and pod.phase is PodPhase.SUCCEEDED and not pod.metadata.is_terminating


def _count_as_succeeded(replica: ReplicaStatus) -> ReplicaStatus:
    """Count running replicas as succeeded, as training-operator does before the clean-up."""
    counts = dict(replica.count_by_state)
    if running := counts.pop(JobState.RUNNING, 0):
        counts[JobState.SUCCEEDED] = counts.get(JobState.SUCCEEDED, 0) + running
    return attrs.evolve(replica, count_by_state=counts)


def _common_state(counts: Mapping[JobState, int], replicas: int) -> JobState:
    """Return the common state of a type's replicas as mx-operator derives it."""
    for state in (JobState.FAILED, JobState.RUNNING):
        if counts.get(state):
            return state
    if replicas and counts.get(JobState.SUCCEEDED) == replicas:
        return JobState.SUCCEEDED
    return JobState.UNKNOWN
