"""The controller's central decision: what a job needs now. Pure: values in, values out.

Only idempotent changes are planned, because a plan may be applied in part, or be based on stale
stores.
"""

import datetime
from collections.abc import Collection, Iterable, Iterator

import attrs

from dlctl.api.elastic import WORKER
from dlctl.api.job import Job, Replica
from dlctl.api.meta import SERVICES
from dlctl.api.pods import Pod, Service
from dlctl.api.status import JobPhase, JobStatus
from dlctl.backoff import Backoff
from dlctl.reconcilers.children import dependents
from dlctl.reconcilers.children.dependents import DependentChanges
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.gang_retries import GangRetry, gang_retry
from dlctl.reconcilers.children.kueue import held_by_kueue
from dlctl.reconcilers.children.placement import outdated_pods
from dlctl.reconcilers.events.pod_events import exit_events
from dlctl.reconcilers.launcher_job.next_write import (
    LauncherJobWrite,
    next_write,
    suspension,
    ttl_write,
)
from dlctl.reconcilers.lifecycle import cleanup, job_limits, job_restarts, replica_restarts
from dlctl.reconcilers.lifecycle.force_deletion import force_deletions
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF
from dlctl.reconcilers.observe import Observed, ReplicaState
from dlctl.reconcilers.plan import Plan, earliest
from dlctl.reconcilers.status import job_status
from dlctl.reconcilers.status.completion import Completion, completion
from dlctl.reconcilers.status.invalid_status import invalid_job_events


@attrs.frozen
class Policy:
    """The controller's settings that plans need, common to all jobs."""

    backoff: Backoff = RESTART_BACKOFF
    # Seconds after the deletion timestamp; 0 disables force deletion.
    force_delete_after_s: float = 0.0


def plan_job(
    job: Job, observed: Observed, desired: Desired, now: datetime.datetime, policy: Policy
) -> Plan:
    """Return what the job needs now."""
    now = now.replace(microsecond=0)
    planned = _plan(job, observed, desired, now, policy.backoff)
    if job.messages.emits_pod_events and planned.status != job.status:
        planned = attrs.evolve(
            planned, notes=(*exit_events(job, planned.status, observed), *planned.notes)
        )
    if job.invalid_reason:
        error = invalid_job_events(job, planned.status, job.invalid_reason)
        planned = attrs.evolve(planned, notes=(*planned.notes, *error))
    # Also after the job's end: a pod that stays counts towards its quota.
    overdue = force_deletions(observed.all_pods, now, policy.force_delete_after_s)
    requeue_after_s = earliest(planned.requeue_after_s, overdue.next_s, observed.phase_wait_s)
    own_status = attrs.evolve(planned.status, written_by_other_operator=False)
    return attrs.evolve(
        planned, status=own_status, force_deleted_pods=overdue.pods, requeue_after_s=requeue_after_s
    )


def _plan(
    job: Job, observed: Observed, desired: Desired, now: datetime.datetime, backoff: Backoff
) -> Plan:
    if job.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE, JobPhase.FAILED):
        return _plan_finished(job, observed, desired, now)
    if job.run_policy.suspended:
        return _plan_suspended(job, observed, desired, now)
    if job.status.phase is JobPhase.RESTARTING:
        return _plan_job_restart(job, observed, desired, now, backoff)
    recorded = replica_restarts.record_restarts(job.status, observed, backoff)
    next_status, notes = job_status.running_status(job, observed, recorded, now)
    outcome = completion(job, observed, now)
    if outcome is None and not job.is_partial and job_restarts.should_restart(job, observed):
        if job_restarts.limit_reached(job):
            outcome = Completion(job_limits.backoff_limit_failure(job, now))
        else:
            again, note = job_restarts.restarting_status(job, next_status, observed, now)
            return Plan(again, notes=(note,), requeue_after_s=0)
    if outcome is None and (failure := job_limits.exceeded_limit(job, next_status, observed, now)):
        outcome = Completion(failure)
    if outcome is None and job.is_partial:
        # Running pods may still end the job; none is created or deleted on incomplete information.
        deadline_s = job_limits.deadline_left_s(job, next_status, now)
        patches = dependents.diff_dependents(desired.dependents, observed.dependents).patched
        patched = DependentChanges(patched=patches)
        return Plan(next_status, notes=notes, dependents=patched, requeue_after_s=deadline_s)
    if outcome is None:
        running = _plan_replicas(job, next_status, observed, now, backoff)
        changed_dependents = dependents.diff_dependents(
            desired.dependents, observed.dependents, desired.retained_resources
        )
        hold_reason = desired.hold_reason
        deadline_s = job_limits.deadline_left_s(job, next_status, now)
        retry = gang_retry(job, observed, now)
        return attrs.evolve(
            running,
            pods=()
            if hold_reason
            else tuple(
                _replicas_to_create(job, running.pods, observed, desired, bool(changed_dependents))
            ),
            notes=notes,
            requeue_after_s=earliest(running.requeue_after_s, deadline_s, retry.next_s),
            deleted_services=_surplus_services(job, observed, desired.services),
            services=_missing_services(job, observed, desired.services),
            ungated_pods=tuple(_ungated(job, observed)),
            dependents=changed_dependents,
            launcher_job=_launcher_job_write(job, observed, desired),
            # Any other update of the PodGroup triggers the scheduler as well.
            gang_retry=GangRetry() if changed_dependents.patched else retry,
        )
    next_status, note = job_status.terminal_status(job, next_status, outcome, now)
    return attrs.evolve(_plan_cleanup(job, next_status, observed, desired), notes=(note,))


def _plan_finished(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    if job.status.phase is JobPhase.CLEAN_UP:
        return _plan_cleanup(job, job.status, observed, desired)
    if job.status.phase is JobPhase.FAILED:
        return _plan_invalid(job, observed, desired, now)
    return _plan_ttl(job, now)


def _plan_ttl(job: Job, now: datetime.datetime) -> Plan:
    left_s = job_limits.ttl_left_s(job, now)
    if left_s is not None and left_s <= 0:
        return Plan(job.status, ttl_expired=True)
    return Plan(job.status, requeue_after_s=left_s)


def _plan_suspended(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    suspended, notes = job_status.suspended_status(job, now)
    retains_services = SERVICES in desired.retained_resources
    return Plan(
        suspended,
        notes=notes,
        deleted_pods=tuple(pod for pod in observed.pods if not pod.metadata.is_terminating),
        deleted_services=() if retains_services else tuple(observed.services.values()),
        services=_missing_services(job, observed, desired.services) if retains_services else (),
        dependents=_idle_dependents(observed, desired, create=observed.launcher is not None),
        launcher_job=_launcher_job_write(job, observed, desired),
    )


def _plan_job_restart(
    job: Job,
    observed: Observed,
    desired: Desired,
    now: datetime.datetime,
    backoff: Backoff,
) -> Plan:
    """Delete all pods; failed ``running_replicas`` stay until the back-off ends.

    The services stay: the next run has the same names.
    """
    left_s = job_restarts.backoff_left_s(job, backoff, now)
    if not observed.pods and left_s <= 0:
        return Plan(attrs.evolve(job.status, phase=JobPhase.CREATING), requeue_after_s=0)
    kept = (
        {job.child_name(replica) for replica in job.success_policy.running_replicas}
        if left_s > 0
        else set()
    )
    leaving = (pod for pod in observed.pods if not pod.metadata.is_terminating)
    return Plan(
        job.status,
        deleted_pods=tuple(pod for pod in leaving if pod.metadata.name not in kept),
        kueue_held_pods=tuple(held_by_kueue(observed.pods)),
        dependents=DependentChanges(patched=_idle_dependents(observed, desired).patched),
        requeue_after_s=left_s if left_s > 0 else None,
    )


def _replicas_to_create(
    job: Job,
    missing: Iterable[Replica],
    observed: Observed,
    desired: Desired,
    dependents_pending: bool,
) -> Iterator[Replica]:
    """Yield the replicas to create now; ``dependents_pending``: some dependents are not up to date.

    A launcher comes last. It reads the names of the others at start, and its role names their pods:
    all of them must exist, since another pod could get the name of a missing one.
    """
    for replica in missing:
        spec = job.replica_spec(replica.type)
        if spec is None or not (spec.create_last or spec.gated):
            yield replica
        elif dependents_pending:
            continue
        elif (
            desired.create_launcher if spec.create_last else not _others_missing(observed, replica)
        ):
            yield replica


def _others_missing(observed: Observed, replica: Replica) -> bool:
    others = (o for o in observed.replicas if o.replica.type != replica.type)
    return any(one.state is ReplicaState.MISSING for one in others)


def _idle_dependents(
    observed: Observed, desired: Desired, *, create: bool = False
) -> DependentChanges:
    """Delete dependents that only running jobs have; retained ones grant access to no pod."""
    idle = dependents.diff_dependents(
        desired.idle_dependents, observed.dependents, desired.retained_resources
    )
    return idle if create else attrs.evolve(idle, created=())


def _launcher_job_write(job: Job, observed: Observed, desired: Desired) -> LauncherJobWrite | None:
    """Return the next write of the launcher's Job; None if the launcher is a pod."""
    if job.launcher_job is None or observed.launcher is None:
        return None
    is_ready = not job.launcher_job.waits_for_workers or all(
        one.is_ready for one in observed.replicas if job.has_own_pod(one.replica)
    )
    return next_write(job, observed.launcher, may_start=is_ready and not desired.hold_reason)


def _ungated(job: Job, observed: Observed) -> Iterator[Pod]:
    """Yield the gated pods whose job's other replicas all run."""
    for spec in job.replica_specs:
        if not spec.gated:
            continue
        others = [o.state for o in observed.replicas if o.replica.type != spec.type]
        if not all(s in (ReplicaState.RUNNING, ReplicaState.SUCCEEDED) for s in others):
            continue
        for one in observed.replicas:
            if one.replica.type == spec.type and one.pod is not None and one.pod.is_gated:
                yield one.pod


def _plan_invalid(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    """Delete everything of a job that failed before it ran, whatever its cleanPodPolicy."""
    return attrs.evolve(
        _plan_ttl(job, now),
        deleted_pods=tuple(pod for pod in observed.pods if not pod.metadata.is_terminating),
        deleted_services=tuple(observed.services.values()),
        dependents=_idle_dependents(observed, desired),
        launcher_job=suspension(observed.launcher) if observed.launcher else None,
    )


def _plan_cleanup(job: Job, ended: JobStatus, observed: Observed, desired: Desired) -> Plan:
    """Delete what the policy says; once nothing is left to delete, the job is done."""
    pods = tuple(cleanup.pods_to_delete(job, observed))
    services = (
        ()
        if SERVICES in desired.retained_resources
        else tuple(cleanup.services_to_delete(job, observed))
    )
    idle, ttl = _idle_dependents(observed, desired), None
    if observed.launcher is not None:
        idle = cleanup.dependents_to_delete(job, idle)
        ttl = ttl_write(job, observed.launcher)
    if not pods and not services and not idle and not ttl:
        ended = attrs.evolve(ended, phase=JobPhase.DONE)
    return Plan(
        ended, deleted_pods=pods, deleted_services=services, dependents=idle, launcher_job=ttl
    )


def _plan_replicas(
    job: Job,
    next_status: JobStatus,
    observed: Observed,
    now: datetime.datetime,
    backoff: Backoff,
) -> Plan:
    created, deleted, waits = [], [], []
    for one in observed.replicas:
        if one.state not in (ReplicaState.MISSING, ReplicaState.FAILED_RETRYABLE):
            continue
        if not job.has_own_pod(one.replica):
            continue
        next_restart_at = replica_restarts.next_restart_at(
            next_status.restarts.get(str(one.replica)), backoff
        )
        if one.state is ReplicaState.MISSING and _is_elastic_worker(job, one.replica):
            # The membership plan adds such a worker only when it is due.
            next_restart_at = None
        wait_s = (next_restart_at - now).total_seconds() if next_restart_at else 0
        if wait_s > 0:
            # A failed pod stays until its replica's restart, so that its logs can be read.
            waits.append(wait_s)
        elif one.state is ReplicaState.MISSING:
            created.append(one.replica)
        elif one.pod is not None:
            deleted.append(one.pod)
    replaced = [o.pod for o in observed.replicas if o.pod and o.state is ReplicaState.TERMINATING]
    leaving = [pod for pod in observed.surplus_pods if not pod.metadata.is_terminating]
    return Plan(
        next_status,
        deleted_pods=(*deleted, *leaving, *outdated_pods(job, observed)),
        pods=tuple(created),
        kueue_held_pods=tuple(held_by_kueue(replaced)),
        requeue_after_s=min(waits, default=None),
    )


def _is_elastic_worker(job: Job, replica: Replica) -> bool:
    return job.status.membership is not None and replica.type == WORKER


def _missing_services(
    job: Job, observed: Observed, with_service: Collection[Replica]
) -> tuple[Replica, ...]:
    return tuple(r for r in with_service if job.service_name(r) not in observed.services)


def _surplus_services(
    job: Job, observed: Observed, with_service: Collection[Replica]
) -> tuple[Service, ...]:
    wanted = {job.service_name(replica) for replica in with_service}
    return tuple(service for name, service in observed.services.items() if name not in wanted)
