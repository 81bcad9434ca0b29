"""Plans for jobs that end or have ended: their last status, clean-up and TTL. Pure."""

import datetime
from collections.abc import Iterable
from typing import TypeVar

import attrs

from dlctl.api.job import Job, Replica
from dlctl.api.meta import SERVICES, Object, ObjectMeta
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.reconcilers.children import dependents
from dlctl.reconcilers.children.dependents import DependentChanges
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.failures.attempts import (
    final_attempts,
    succeeded_attempts,
)
from dlctl.reconcilers.launcher_job.next_write import end_write, suspension
from dlctl.reconcilers.lifecycle import cleanup, job_limits
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.replicas import surplus_services
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.completion import Completion
from dlctl.reconcilers.status.scale_downs import surplus_replicas

T = TypeVar("T", bound=Object)


@attrs.frozen
class _Deletions:
    """The objects that the clean-up of a job deletes; empty if nothing is left."""

    pods: tuple[Pod, ...]
    services: tuple[Service, ...]
    # If the job has no launcher's Job, these include objects that idle jobs keep in another form.
    dependents: DependentChanges

    def __bool__(self) -> bool:
        return bool(self.pods or self.services or self.dependents)


def plan_end(
    job: Job,
    status: JobStatus,
    outcome: Completion,
    observed: Observed,
    desired: Desired,
    now: datetime.datetime,
) -> Plan:
    """Return the plan of a job that has just ended: its last status, and its clean-up."""
    attempts = (
        final_attempts(status.attempts, job, observed, outcome.failure)
        if outcome.failure
        else succeeded_attempts(job, observed, now)
    )
    status = attrs.evolve(status, attempts=attempts)
    ended, note = status_transitions.terminal_status(job, status, outcome, now)
    if not job.is_partial:
        ended = attrs.evolve(ended, scaled_down=surplus_replicas(job, observed))
    return attrs.evolve(_plan_cleanup(job, ended, observed, desired), notes=(note,))


def plan_finished(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    """Return the plan of a job that has ended before: the rest of its clean-up, or its TTL.

    After an edit, which may be one of its ``cleanPodPolicy``, it is cleaned up again.
    """
    if job.status.phase is JobPhase.CLEAN_UP:
        # Another operator's status has no generation; later edits are noticed by it.
        generation = job.status.observed_generation or job.generation
        ended = attrs.evolve(job.status, observed_generation=generation)
        return _plan_cleanup(job, ended, observed, desired)
    if is_edited_after_end(job):
        edited = attrs.evolve(
            job.status, phase=JobPhase.CLEAN_UP, observed_generation=job.generation
        )
        # What a limit deletes is gone by now, and a limit set since was not exceeded.
        left = _deletions(job, job.run_policy.clean_pod_policy, observed, desired)
        return _plan_deletions(job, edited, observed, left)
    if job.status.phase is JobPhase.FAILED:
        return _plan_invalid(job, observed, desired, now)
    return _with_late_children(_plan_ttl(job, now), job, observed, desired)


def is_edited_after_end(job: Job) -> bool:
    """Return whether the spec of a job was edited since its clean-up."""
    status = job.status
    return status.phase is JobPhase.DONE and 0 < status.observed_generation < job.generation


def _with_late_children(plan: Plan, job: Job, observed: Observed, desired: Desired) -> Plan:
    """Also delete what appeared after the end: a create may take effect late."""
    end = job.status.completion_time
    others = (one for found in observed.children.dependents.values() for one in found)
    children = (*observed.own_pods, *observed.services.values(), *others)
    late = {one.metadata.uid for one in children if end and _is_late(one.metadata, end)}
    if not late:
        return plan
    left = _deletions(job, _policy_at_end(job, job.status, observed), observed, desired)
    deleted = tuple(each for each in left.dependents.deleted if each[1].metadata.uid in late)
    return attrs.evolve(
        plan,
        deleted_pods=tuple(pod for pod in left.pods if pod.metadata.uid in late),
        deleted_services=tuple(one for one in left.services if one.metadata.uid in late),
        dependents=DependentChanges(deleted=deleted),
    )


def _is_late(metadata: ObjectMeta, end: datetime.datetime) -> bool:
    # Times have whole seconds: what was there before may have the second of the end.
    return metadata.creation_timestamp is not None and metadata.creation_timestamp > end


def _plan_ttl(job: Job, now: datetime.datetime) -> Plan:
    left_s = job_limits.ttl_left_s(job, now)
    if left_s is not None and left_s <= 0:
        return Plan(job.status, ttl_expired=True)
    return Plan(job.status, requeue_after_s=left_s)


def _plan_cleanup(job: Job, ended: JobStatus, observed: Observed, desired: Desired) -> Plan:
    """Delete what the policy says, and what a scale-down left; an exceeded limit deletes more."""
    policy = _policy_at_end(job, ended, observed)
    left = _deletions(job, policy, observed, desired)
    if not job.is_partial:
        left = _with_scaled_down(job, ended, left, observed, desired)
    return _plan_deletions(job, ended, observed, left)


def _with_scaled_down(
    job: Job, ended: JobStatus, left: _Deletions, observed: Observed, desired: Desired
) -> _Deletions:
    """Also delete the children of replicas that were removed before the job's end."""
    removed = [Replica(type_, i) for type_, found in ended.scaled_down.items() for i in found]
    if not removed:
        return left
    names = {job.child_name(replica) for replica in removed}
    pods = [pod for pod in observed.surplus_pods if pod.metadata.name in names]
    services: list[Service] = []
    if SERVICES not in desired.retained_resources:
        names = {job.service_name(replica) for replica in removed}
        surplus = surplus_services(job, observed, desired.services)
        services = [service for service in surplus if service.metadata.name in names]
    return attrs.evolve(
        left, pods=_with_others(left.pods, pods), services=_with_others(left.services, services)
    )


def _with_others(children: Iterable[T], others: Iterable[T]) -> tuple[T, ...]:
    """Return the children and those of the others that are not among them and not leaving."""
    staying = (one for one in others if not one.metadata.is_terminating)
    return tuple({one.metadata.uid: one for one in (*children, *staying)}.values())


def _plan_deletions(job: Job, ended: JobStatus, observed: Observed, left: _Deletions) -> Plan:
    """Delete what is left; once nothing is, the job is done."""
    launcher = observed.launcher
    failed = ended.failure is not None
    launcher_write = end_write(job, launcher, failed=failed) if launcher else None
    if not left and not launcher_write:
        ended = attrs.evolve(ended, phase=JobPhase.DONE, scaled_down={})
    return Plan(
        ended,
        deleted_pods=left.pods,
        deleted_services=left.services,
        dependents=left.dependents,
        launcher_job=launcher_write,
    )


def _policy_at_end(job: Job, ended: JobStatus, observed: Observed) -> CleanPodPolicy:
    if observed.launcher is None:
        return cleanup.policy_at_end(job, ended.failure)
    # The limits are those of its Job, and end the launcher only.
    return job.run_policy.clean_pod_policy


def _deletions(
    job: Job, policy: CleanPodPolicy, observed: Observed, desired: Desired
) -> _Deletions:
    idle = idle_dependents(observed, desired)
    if observed.launcher is not None:
        idle = cleanup.dependents_to_delete(job, idle)
    retains_services = SERVICES in desired.retained_resources
    services = () if retains_services else tuple(cleanup.services_to_delete(job, observed, policy))
    return _Deletions(tuple(cleanup.pods_to_delete(job, observed, policy)), services, idle)


def _plan_invalid(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    """Delete everything of a job that failed before it ran, whatever its cleanPodPolicy."""
    return attrs.evolve(
        _plan_ttl(job, now),
        deleted_pods=observed.remaining_pods,
        deleted_services=tuple(observed.services.values()),
        dependents=idle_dependents(observed, desired),
        launcher_job=suspension(observed.launcher) if observed.launcher else None,
    )


def idle_dependents(
    observed: Observed, desired: Desired, *, create: bool = False
) -> DependentChanges:
    """Delete dependents that only running jobs have; retained ones grant access to no pod."""
    idle = dependents.diff_dependents(
        desired.idle_dependents, observed.children.dependents, desired.retained_resources
    )
    return idle if create else attrs.evolve(idle, created=())
