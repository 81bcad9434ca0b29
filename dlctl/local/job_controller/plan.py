"""The next step of a Job: pods to create or delete, ends to count, and its status. Pure.

The order of a job's end: its outcome is recorded, its pods are deleted, their ends are counted, and
only then it is finished.
"""

import datetime
from collections.abc import Sequence
from typing import Final

import attrs
import msgspec

from dlctl.local.job_controller import conditions
from dlctl.local.job_controller.conditions import Outcome
from dlctl.local.job_controller.controlled_batch_jobs import (
    ControlledBatchJob,
    ControlledBatchJobStatus,
    UncountedPods,
)
from dlctl.local.job_controller.failure_backoff import NO_FAILURES, FailureRecord
from dlctl.local.job_controller.observed_job import ObservedJob, count_released, observe
from dlctl.local.job_controller.pod_state import (
    is_failed,
    is_ready,
    is_terminating,
    is_tracked,
    phase,
    removal_order,
    restarts,
)
from dlctl.local.node.api_types import NodePod

MAX_CHANGES: Final = 500
_MIN_DELAY_S: Final = 1.0
_replace = msgspec.structs.replace


@attrs.frozen
class PlannedEvent:
    """An event about the job, recorded after the status is written."""

    type: str
    reason: str
    message: str


@attrs.frozen(kw_only=True)
class JobPlan:
    """The steps of one reconcile, in this order; without a change, all but ``status`` are empty."""

    delete: Sequence[NodePod] = ()
    # True if the end of the deleted pods is not counted.
    forget_deleted: bool = False
    create_count: int = 0
    status: ControlledBatchJobStatus
    failures: FailureRecord = NO_FAILURES
    # Pods whose finalizer is removed once the status is written.
    release: Sequence[NodePod] = ()
    events: Sequence[PlannedEvent] = ()
    requeue_after_s: float | None = None


def plan_job(
    job: ControlledBatchJob,
    pods: Sequence[NodePod],
    failures: FailureRecord,
    now: datetime.datetime,
) -> JobPlan:
    """Return what a job that has not finished needs, given its pods and its recent failures."""
    observed = observe(job, pods, failures, now)
    status = count_released(job.status, pods)
    if status.start_time is None and not job.spec.suspend:
        status = _replace(status, start_time=now.replace(microsecond=0))
    outcome = conditions.recorded_outcome(status) or _failure(observed, status)
    if outcome is not None:
        plan = JobPlan(delete=observed.active, status=status)
    elif job.metadata.is_terminating:
        plan = JobPlan(status=status)
    else:
        plan = _manage_pods(observed, status)
    plan = _with_counts(observed, plan)
    if outcome is None and _is_complete(observed, plan.status.active):
        outcome = conditions.COMPLETIONS_REACHED
    elif outcome is None and not job.metadata.is_terminating:
        plan = _with_suspension(observed, plan)
    plan = _finish(_track_ends(observed, plan, outcome), job, outcome, now)
    return attrs.evolve(plan, failures=observed.failures)


def _failure(observed: ObservedJob, status: ControlledBatchJobStatus) -> Outcome | None:
    job, limit = observed.job, observed.job.spec.backoff_limit
    if observed.failed > limit or _restarts_exceed(observed, limit):
        return conditions.BACKOFF_LIMIT_EXCEEDED
    left_s = _deadline_s(job, status, observed.now)
    return conditions.DEADLINE_EXCEEDED if left_s is not None and left_s <= 0 else None


def _restarts_exceed(observed: ObservedJob, limit: int) -> bool:
    if observed.job.spec.template["spec"].get("restartPolicy") != "OnFailure":
        return False
    return sum(restarts(pod) for pod in observed.pods) >= max(limit, 1)


def _deadline_s(
    job: ControlledBatchJob, status: ControlledBatchJobStatus, now: datetime.datetime
) -> float | None:
    """Return the seconds until the job's deadline; None without one, or while suspended."""
    seconds = job.spec.active_deadline_seconds
    if seconds is None or status.start_time is None or job.spec.suspend:
        return None
    return seconds - (now - status.start_time).total_seconds()


def _manage_pods(observed: ObservedJob, status: ControlledBatchJobStatus) -> JobPlan:
    job, active = observed.job, observed.active
    requeue_after_s = _deadline_s(job, status, observed.now)
    if job.spec.suspend:
        return JobPlan(delete=active, forget_deleted=True, status=status)
    wanted = _wanted(observed, len(active))
    if surplus := len(active) - wanted:
        if surplus > 0:
            surplus_pods = sorted(active, key=removal_order)[: min(surplus, MAX_CHANGES)]
            return JobPlan(
                delete=surplus_pods,
                forget_deleted=True,
                status=status,
                requeue_after_s=requeue_after_s,
            )
        missing = -surplus
        if job.replaces_only_failed:
            missing -= sum(map(is_terminating, observed.pods))
        wait_s = observed.failures.remaining_s(observed.now)
        if missing > 0 and wait_s > 0:
            wait_s = max(wait_s, _MIN_DELAY_S)
            requeue_after_s = wait_s if requeue_after_s is None else min(wait_s, requeue_after_s)
        elif missing > 0:
            return JobPlan(
                create_count=min(missing, MAX_CHANGES),
                status=status,
                requeue_after_s=requeue_after_s,
            )
    return JobPlan(status=status, requeue_after_s=requeue_after_s)


def _wanted(observed: ObservedJob, active: int) -> int:
    """Return how many pods should be active."""
    spec = observed.job.spec
    if spec.completions is None:
        return active if observed.succeeded else spec.parallelism
    return max(min(spec.completions - observed.succeeded, spec.parallelism), 0)


def _with_counts(observed: ObservedJob, plan: JobPlan) -> JobPlan:
    """Add the counts of pods as they will be once the pods are created and deleted."""
    deleted = {pod.metadata.uid for pod in plan.delete}
    kept = [pod for pod in observed.active if pod.metadata.uid not in deleted]
    status = _replace(
        plan.status,
        active=len(kept) + plan.create_count,
        ready=sum(map(is_ready, kept)),
        terminating=sum(map(is_terminating, observed.pods)) + len(deleted),
    )
    return attrs.evolve(plan, status=status)


def _is_complete(observed: ObservedJob, active: int) -> bool:
    completions = observed.job.spec.completions
    enough = observed.succeeded >= (1 if completions is None else completions)
    return enough and active == 0


def _with_suspension(observed: ObservedJob, plan: JobPlan) -> JobPlan:
    """Add the condition Suspended; while it is true, and when it ends, the start is forgotten."""
    if observed.job.spec.suspend:
        status = conditions.with_condition(
            plan.status, "Suspended", "JobSuspended", "Job suspended", observed.now
        )
        start, event = None, PlannedEvent("Normal", "Suspended", "Job suspended")
    else:
        status = conditions.without_condition(
            plan.status, "Suspended", "JobResumed", "Job resumed", observed.now
        )
        start = observed.now.replace(microsecond=0)
        event = PlannedEvent("Normal", "Resumed", "Job resumed")
    if status is plan.status:
        return plan
    return attrs.evolve(plan, status=_replace(status, start_time=start), events=(event,))


def _track_ends(observed: ObservedJob, plan: JobPlan, outcome: Outcome | None) -> JobPlan:
    """Record the pods that have ended in the status; their finalizers are removed after it."""
    job, old = observed.job, plan.status.uncounted_terminated_pods or UncountedPods()
    succeeded, failed, release = list(old.succeeded), list(old.failed), []
    ends = outcome is not None
    fails = outcome is not None and not outcome.is_success
    for pod in observed.pods:
        uid, has_failed = pod.metadata.uid, is_failed(pod, job)
        has_succeeded = phase(pod) == "Succeeded"
        may_go = ends or job.metadata.is_terminating or has_succeeded or has_failed
        if not is_tracked(pod) or not may_go:
            continue
        release.append(pod)
        if uid in succeeded or uid in failed:
            continue
        if has_succeeded:
            succeeded.append(uid)
        elif has_failed or fails:
            failed.append(uid)
        if len(succeeded) + len(failed) >= MAX_CHANGES:
            break
    status = _replace(
        plan.status, uncounted_terminated_pods=UncountedPods(tuple(succeeded), tuple(failed))
    )
    return attrs.evolve(plan, status=status, release=release)


def _finish(
    plan: JobPlan, job: ControlledBatchJob, outcome: Outcome | None, now: datetime.datetime
) -> JobPlan:
    """Record the outcome; once it is recorded and all pods have ended and are counted, finish."""
    if outcome is None:
        return plan
    status = conditions.with_condition(
        plan.status, outcome.interim, outcome.reason, outcome.message, now
    )
    if plan.release or plan.delete or status.terminating or not job.status.is_true(outcome.interim):
        return attrs.evolve(plan, status=status)
    status = conditions.with_condition(
        status, outcome.terminal, outcome.reason, outcome.message, now
    )
    if not outcome.is_success:
        event = PlannedEvent("Warning", outcome.reason, outcome.message)
        return attrs.evolve(plan, status=status, events=(event,))
    ended = status.condition(outcome.terminal)
    assert ended is not None, "it has just been added"
    status = _replace(status, completion_time=ended.last_transition_time)
    events = [PlannedEvent("Normal", "Completed", "Job completed")]
    if job.spec.completions is not None and status.succeeded > job.spec.completions:
        message = "Too many succeeded pods running after completion count reached"
        events.insert(0, PlannedEvent("Warning", "TooManySucceededPods", message))
    return attrs.evolve(plan, status=status, events=events)
