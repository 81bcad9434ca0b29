"""The conditions that follow from a job's replicas: Running and Restarting. Pure."""

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dlctl.api.job import Job
from dlctl.api.objects.pods import PodPhase
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.status.replica_counts import types_with_fewer_running
from dlctl.reconcilers.status.replica_terminations import first_terminations

# The kubelet's reason of a pod that it has evicted, and the end of that of mpi-operator's event.
EVICTED: Final = "Evicted"
# States in which a replica that ran before does not run now.
_NOT_RUNNING: Final = frozenset(
    {ReplicaState.MISSING, ReplicaState.TERMINATING, ReplicaState.PENDING}
)


def is_running(job: Job, observed: Observed) -> bool:
    """Return whether a replica that makes the job Running runs, or all of them if it needs all."""
    running = {o.replica for o in observed.replicas if o.state is ReplicaState.RUNNING}
    policy = job.success_policy
    if policy.all_run:
        return bool(policy.running_replicas) and running.issuperset(policy.running_replicas)
    return any(replica in running for replica in policy.running_replicas)


def restarting_replicas(job: Job, observed: Observed) -> list[ObservedReplica]:
    """Return the replicas that are restarted; an elastic job runs on without its workers."""
    in_place = job.messages.emits_in_place_restarts
    return [
        one
        for one in observed.replicas
        if one.state is ReplicaState.FAILED_RETRYABLE or (one.is_restarting and in_place)
    ]


def with_running(
    current: tuple[Condition, ...],
    job: Job,
    observed: Observed,
    restarting: Sequence[ObservedReplica],
    now: datetime.datetime,
) -> tuple[Condition, ...]:
    """Return the conditions with Running or Restarting set, if the job does either."""
    if job.elasticity:
        restarting = [o for o in restarting if job.success_policy.decides_running(o.replica)]
    if restarting and not job.messages.emits_restarting:
        return _interrupted(current, job, restarting, now)
    if restarting:
        message = job.messages.restarting(type_counts(restarting), first_terminations(restarting))
        return with_true(current, job, conditions.RESTARTING, message, now)
    if is_running(job, observed):
        return with_true(current, job, conditions.RUNNING, job.messages.running(), now)
    if not job.messages.emits_restarting:
        # mpi-operator's jobs stay Running while pods are replaced that were deleted.
        return current
    ran = conditions.find(current, conditions.RUNNING)
    if ran and ran.status and (missing := _missing_replicas(job, observed, ran)):
        # Kueue withdraws the quota of a job that does not return to Running in time.
        message = job.messages.interrupted(type_counts(missing), first_terminations(missing))
        return with_true(current, job, conditions.RESTARTING, message, now)
    return current


def interruption(job: Job, restarting: Sequence[ObservedReplica]) -> tuple[str, str]:
    """Return the reason and message of the event about replicas that have failed or are lost."""
    kind, evicted = job.resource.kind, [o for o in restarting if _is_evicted(o)]
    if evicted and not job.messages.emits_restarting:
        wanted = sum(job.replica_count(type_) for type_ in type_counts(evicted))
        return f"{kind}{EVICTED}", f"{len(evicted)}/{wanted} workers are evicted"
    message = job.messages.restarting_event_message(
        type_counts(restarting), first_terminations(restarting)
    )
    return f"{kind}{conditions.RESTARTING}", message


def _interrupted(
    current: tuple[Condition, ...],
    job: Job,
    restarting: Sequence[ObservedReplica],
    now: datetime.datetime,
) -> tuple[Condition, ...]:
    """Return the conditions with Running false, if the job ran."""
    if not conditions.is_true(current, conditions.RUNNING):
        return current
    reason, message = interruption(job, restarting)
    stopped = Condition.at(now, conditions.RUNNING, reason, message, status=False)
    return conditions.with_condition(current, stopped)


def _is_evicted(one: ObservedReplica) -> bool:
    return one.termination is not None and one.termination.reason == EVICTED


def with_true(
    current: tuple[Condition, ...],
    job: Job,
    type_: str,
    message: str,
    now: datetime.datetime,
    *,
    reason: str = "",
) -> tuple[Condition, ...]:
    """Return the conditions with one true; its reason is that of the job's kind by default."""
    reason = reason or job.messages.reason(type_)
    return conditions.with_condition(current, Condition.at(now, type_, reason, message))


def type_counts(replicas: Iterable[ObservedReplica]) -> Mapping[str, int]:
    """Return how many of these replicas each type has."""
    counts = Counter(one.replica.type for one in replicas)
    return {type_: counts[type_] for type_ in sorted(counts)}


def _missing_replicas(job: Job, observed: Observed, ran: Condition) -> list[ObservedReplica]:
    """Return the ``running_replicas`` whose pods are missing, terminating or not started yet.

    Those without which a running job fails are not waited for, so they are left out, as are those
    of a type of which all that ran still run or have ended: they were added and replace nothing.
    """
    elasticity = job.elasticity
    if elasticity and elasticity.requires_launcher and job.status.phase is JobPhase.RUNNING:
        return []
    running = [o for o in observed.replicas if job.success_policy.decides_running(o.replica)]
    stopped = [o for o in running if o.state in _NOT_RUNNING and not _is_started(o)]
    if stopped and job.status.replica_statuses:
        lost_types = types_with_fewer_running(job, observed)
        stopped = [o for o in stopped if o.replica.type in lost_types]
    return [o for o in stopped if not _is_older(o, ran)]


def _is_older(one: ObservedReplica, ran: Condition) -> bool:
    """Return whether a pod has waited since before its job ran, so that it replaces no other."""
    created = one.pod.metadata.creation_timestamp if one.pod else None
    if created is None or one.state is not ReplicaState.PENDING:
        return False
    return created <= ran.last_transition_time


def _is_started(one: ObservedReplica) -> bool:
    # Between two runs of a container, and before its first report, the pod counts as started.
    return one.state is ReplicaState.PENDING and (
        one.is_restarting or (one.pod is not None and one.pod.phase is not PodPhase.PENDING)
    )
