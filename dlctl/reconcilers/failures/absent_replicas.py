"""Replicas that are gone without a trace: no pod shows how they ended. Pure."""

from collections import Counter

from dlctl.api.job import Job
from dlctl.api.objects.pods import PodPhase
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.status.replica_conditions import is_running
from dlctl.reconcilers.status.replica_counts import types_with_fewer_running, types_with_more_before


def absent_replica(job: Job, observed: Observed) -> ObservedReplica | None:
    """Return a replica whose loss has ended an attempt, though no pod shows how it ended."""
    absent = [one for one in observed.replicas if one.state is ReplicaState.MISSING]
    if not absent:
        return None
    by_policy = [one for one in absent if job.failure_policy_decides(one.replica.type)]
    if by_policy and job.status.phase is JobPhase.RUNNING:
        # The others do not go on without it, whether or not the job still counts as running.
        lost = _lost_types(job, observed)
        found = next((one for one in by_policy if one.replica.type in lost), None)
        if found is not None:
            return found
    was_running = conditions.is_true(job.status.conditions, conditions.RUNNING)
    if not was_running or is_running(job, observed):
        return None
    needed = frozenset(job.success_policy.running_replicas)
    fewer = types_with_fewer_running(job, observed)
    others = (o for o in absent if not job.failure_policy_decides(o.replica.type))
    return next((o for o in others if o.replica in needed and o.replica.type in fewer), None)


def _lost_types(job: Job, observed: Observed) -> frozenset[str]:
    """Return the types of which more replicas ran than are still to be seen in any way.

    The status does not say which ones ran, so each that may have counts: an end that nobody reports
    is rarer than a replica that has not been created yet.
    """
    ran = Counter(o.replica.type for o in observed.replicas if _may_have_run(job, o))
    # After a scale-down, its pods are those of no replica.
    return types_with_more_before(job, ran, len(observed.surplus_pods))


def _may_have_run(job: Job, one: ObservedReplica) -> bool:
    """Return whether a replica may be one of those that the status counts as running."""
    if one.state is ReplicaState.MISSING:
        return _has_ended(job, one)
    if one.state is ReplicaState.SUCCEEDED:
        return one.replica.index not in job.status.completed_indexes(one.replica.type)
    if one.state is ReplicaState.PENDING:
        # Its container has ended, or is between two runs.
        return one.pod is not None and one.pod.phase is not PodPhase.PENDING
    return True


def _has_ended(job: Job, one: ObservedReplica) -> bool:
    """Return whether the last attempt ended with a replica, which may have run on for a while."""
    last = job.status.last_attempt
    verdict = last.verdict if last is not None and last.end_time is not None else None
    return verdict is not None and verdict.may_name(str(one.replica))
