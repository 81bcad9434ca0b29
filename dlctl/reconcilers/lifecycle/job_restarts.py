"""Restarts of a whole job: delete everything, then create it again after a back-off. Pure."""

import datetime
from collections.abc import Mapping

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import RestartStrategy
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobStatus, RestartRecord
from dlctl.backoff import Backoff
from dlctl.reconcilers.lifecycle import replica_restarts
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits, restart_at
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.restart_attempts import is_of_earlier_attempt, pods_of_earlier_attempts
from dlctl.reconcilers.suspended_runs import is_discarded, predates_resumption


def should_restart(job: Job, observed: Observed) -> bool:
    """Return whether one of ``running_replicas`` failed in a way that a restart may fix."""
    may_restart = job.elasticity is not None and job.elasticity.job_restart_limit > 0
    return may_restart and _failed_running_replica(job, observed) is not None


def is_limit_reached(job: Job) -> bool:
    """Return whether the job has reached its restart limit."""
    return job.elasticity is None or job.status.job_restarts >= job.elasticity.job_restart_limit


def failure_text(job: Job, observed: Observed) -> str:
    """Return how the failed one of ``running_replicas`` ended."""
    failed = _failed_running_replica(job, observed)
    return failed.termination.message if failed and failed.termination else "it has ended"


def restarting_status(
    job: Job, status: JobStatus, cause: str, now: datetime.datetime, *, counts: bool = False
) -> tuple[JobStatus, EventNote]:
    """Return the status of a job that is about to be restarted as a whole."""
    membership = status.membership
    if membership is not None:
        membership = membership.reset()
    count = status.job_restarts + 1
    message = f"{job.resource.kind} {job.key} restarted (attempt {count}): {cause}"
    status = attrs.evolve(
        status,
        phase=JobPhase.RESTARTING,
        conditions=_restarting_conditions(job, status, message, now),
        replica_statuses=(),
        restarts=_kept_restarts(job, status),
        job_restarts=count,
        counted_restarts=status.counted_restarts + counts,
        membership=membership,
    )
    return status, EventNote("Warning", f"{job.resource.kind}Restarting", message)


def restart_left_s(job: Job, limits: RestartLimits, now: datetime.datetime) -> float:
    """Return the seconds until a restarting job may be created again; 0 or less if it may now."""
    if not job.has_failure_policy:
        return _backoff_left_s(job, limits.backoff, now)
    due = restart_at(job.status.attempts, limits)
    return (due - now).total_seconds() if due else 0.0


def kept_pods(job: Job, observed: Observed) -> frozenset[str]:
    """Return the names of the pods that stay until the back-off ends, so that logs can be read."""
    last = job.status.last_attempt
    if not job.has_failure_policy or last is None or last.verdict is None:
        return frozenset(map(job.child_name, job.success_policy.running_replicas))
    blamed = last.verdict.pod
    # A pod that makes way for a draining node still runs.
    return frozenset(
        pod.metadata.name
        for pod in observed.pods_with_newest_launcher
        if pod.metadata.name == blamed and pod.phase.finished
    )


def may_create_pods(job: Job, observed: Observed) -> bool:
    """Return whether pods may be created, as far as those of an earlier run allow it."""
    return not is_blocking(job) or not (
        pods_of_earlier_attempts(job, observed.surplus_pods)
        or (observed.launcher is not None and observed.launcher.is_outdated)
        or any(_is_of_suspended_run(job, pod) for pod in observed.pods_with_active_launchers)
    )


def is_suspension_unfinished(job: Job, observed: Observed) -> bool:
    """Return whether a resumed job still has a pod that its suspension should have deleted.

    The pod would count as one of the next run.
    """
    is_left = any(not pod.metadata.is_terminating for pod in observed.pods_with_active_launchers)
    return job.status.phase is JobPhase.SUSPENDED and is_blocking(job) and is_left


def is_blocking(job: Job) -> bool:
    """Return whether the pods of two runs of a job must never meet."""
    policy = job.run_policy.failure_policy
    return policy is not None and policy.restart_strategy is not RestartStrategy.RECREATE


def _is_of_suspended_run(job: Job, pod: Pod) -> bool:
    """Return whether a pod was deleted by a suspension that is over, and is not gone yet.

    The time of the deletion alone does not show it: the server's clock may be ahead.
    """
    is_of_it = is_discarded(job, pod) or predates_resumption(job, pod)
    return pod.metadata.is_terminating and is_of_it


def may_restart(job: Job, observed: Observed) -> bool:
    """Return whether the next attempt may begin, as far as the pods of the last one allow it."""
    launcher = observed.launcher.batch_job if observed.launcher else None
    if not job.has_failure_policy or is_blocking(job):
        # The Job of a launcher is gone after its pods.
        return not observed.own_pods and launcher is None
    # An object without the label of an earlier attempt would count as part of the next one.
    if launcher is not None and not (
        launcher.metadata.is_terminating and is_of_earlier_attempt(job, launcher)
    ):
        return False
    earlier = {pod.metadata.uid for pod in pods_of_earlier_attempts(job, observed.own_pods)}
    return all(
        pod.metadata.is_terminating or pod.metadata.uid in earlier for pod in observed.own_pods
    )


def _backoff_left_s(job: Job, backoff: Backoff, now: datetime.datetime) -> float:
    """Return the seconds until the job may be created again."""
    waits = [
        replica_restarts.next_restart_at(job.status.restarts.get(str(r)), backoff)
        for r in job.success_policy.running_replicas
    ]
    return max(((due - now).total_seconds() for due in waits if due), default=0.0)


def _restarting_conditions(
    job: Job, status: JobStatus, message: str, now: datetime.datetime
) -> tuple[Condition, ...]:
    current = status.conditions
    if job.elasticity is not None:
        # The other conditions of elastic jobs report the progress of one attempt.
        current = tuple(c for c in current if c.type == conditions.CREATED)
    if not job.has_failure_policy:
        return current
    reason = job.messages.reason(conditions.RESTARTING)
    restarting = Condition.at(now, conditions.RESTARTING, reason, message)
    return conditions.with_condition(current, restarting)


def _kept_restarts(job: Job, status: JobStatus) -> Mapping[str, RestartRecord]:
    """Return the records that determine the back-off; a failure policy has its own."""
    if job.has_failure_policy:
        return {}
    running = {str(replica) for replica in job.success_policy.running_replicas}
    return {name: record for name, record in status.restarts.items() if name in running}


def _failed_running_replica(job: Job, observed: Observed) -> ObservedReplica | None:
    found = (o for o in observed.replicas if job.success_policy.decides_running(o.replica))
    return next((o for o in found if o.state is ReplicaState.FAILED_RETRYABLE), None)
