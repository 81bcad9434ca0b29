"""Why a job does not run, as one cause with one sentence. Pure.

The condition, ``dlctl get`` and ``dlctl why`` show the same sentence. Its text is stable while the
cause is: what alternates while a kubelet or server retries is left out.
"""

import datetime
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.job import WORKER, Job
from dlctl.api.meta import BATCH_JOBS, PODS
from dlctl.api.status import conditions
from dlctl.api.status import waiting_reasons as reasons
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.api.status.waiting import Waiting
from dlctl.backoff import Backoff
from dlctl.durations import shortest_wait
from dlctl.errors import truncated
from dlctl.name_lists import first_names
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits
from dlctl.reconcilers.lifecycle.job_restarts import restart_left_s
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF, next_restart_at
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.status.waiting_replicas import ReplicaWait, recreation_text, replica_waits
from dlctl.reconcilers.waiting_texts import utc

# A job that starts within this time gets no condition, and no additional status write, for pods
# that are being scheduled, created and initialized.
PATIENCE_S: Final = 30.0
# Each check of a large job reads all of its pods, so checks are spaced out.
_REPLICAS_PER_S: Final = 500
_MAX_BETWEEN_CHECKS_S: Final = 10.0
_UNFINISHED: Final = frozenset(
    {JobPhase.CREATING, JobPhase.RUNNING, JobPhase.RESTARTING, JobPhase.SUSPENDED}
)


@attrs.frozen
class ReportedWait:
    """The cause to report, and the seconds until another wait is long enough to be reported."""

    waiting: Waiting | None = None
    requeue_after_s: float | None = None


def with_waiting(
    job: Job,
    plan: Plan,
    observed: Observed,
    hold_reason: str,
    now: datetime.datetime,
    limits: RestartLimits,
) -> Plan:
    """Return the plan with the condition Waiting set, updated or removed in its status."""
    if plan.status.phase not in _UNFINISHED:
        return plan
    current = attrs.evolve(job, status=plan.status)
    wait = _job_restart(current, limits, now) or reported_wait(
        current, observed, now, hold_reason=hold_reason, backoff=limits.backoff
    )
    return attrs.evolve(
        plan,
        status=attrs.evolve(
            plan.status, conditions=_with_condition(plan.status, wait.waiting, now)
        ),
        requeue_after_s=shortest_wait(plan.requeue_after_s, wait.requeue_after_s),
    )


def _job_restart(job: Job, limits: RestartLimits, now: datetime.datetime) -> ReportedWait | None:
    """Return the wait for the restart of a whole job, if its back-off is worth a message."""
    if job.status.phase is not JobPhase.RESTARTING:
        return None
    left_s = restart_left_s(job, limits, now)
    reported = conditions.find(job.status.conditions, conditions.WAITING)
    is_reported = reported is not None and reported.reason == reasons.RESTART_BACK_OFF
    if left_s <= 0 or (left_s < PATIENCE_S and not is_reported):
        return None
    due = now + datetime.timedelta(seconds=left_s)
    return _reported(reasons.RESTART_BACK_OFF, f"the whole job failed and restarts at {utc(due)}")


def waiting_cause(
    job: Job,
    observed: Observed,
    now: datetime.datetime,
    *,
    hold_reason: str = "",
    backoff: Backoff = RESTART_BACKOFF,
) -> Waiting | None:
    """Return what a job that has not ended waits for now, however short the wait has been so far.

    None if it waits for nothing. ``hold_reason`` says why its pods are not created yet, if at all.
    """
    return reported_wait(
        job, observed, now, hold_reason=hold_reason, backoff=backoff, patience_s=0
    ).waiting


def reported_wait(
    job: Job,
    observed: Observed,
    now: datetime.datetime,
    *,
    hold_reason: str = "",
    backoff: Backoff = RESTART_BACKOFF,
    patience_s: float = PATIENCE_S,
) -> ReportedWait:
    """Return what to report of a job that has not ended: the cause that holds up the others.

    Replicas that have waited for less than ``patience_s`` are not reported yet.
    """
    if job.invalid_reason:
        return _reported(job.messages.invalid_reason(), job.invalid_reason)
    if observed.children.kueue_wait is not None:
        return ReportedWait(observed.children.kueue_wait)
    if job.run_policy.suspended:
        name = f"{job.resource.kind.lower()}/{job.key.name}"
        return _reported(
            reasons.SUSPENDED, f"the job is suspended: `dlctl resume {name}` starts it"
        )
    if observed.children.rejection_wait is not None:
        return ReportedWait(observed.children.rejection_wait)
    if (held := _held_children(observed, now, patience_s)) is not None:
        return held
    if hold_reason:
        return _reported(reasons.POD_GROUP_NOT_ADMITTED, hold_reason)
    return _of_replicas(job, observed, now, backoff, patience_s)


def _held_children(
    observed: Observed, now: datetime.datetime, patience_s: float
) -> ReportedWait | None:
    """Return the wait of children that belong to no replica alone, and are deleted by others."""
    held = {
        f"{resource.kind} {name}": (resource, wait)
        for (resource, name), wait in observed.children.recreation_waits.items()
        if resource not in (PODS, BATCH_JOBS) and (now - wait.since).total_seconds() >= patience_s
    }
    if not held:
        return None
    names, verb = first_names([*held]), "waits" if len(held) == 1 else "wait"
    text = recreation_text(*next(iter(held.values())))
    return _reported(reasons.CHILD_DELETED, f"{names} {verb}: {text}")


def _of_replicas(
    job: Job, observed: Observed, now: datetime.datetime, backoff: Backoff, patience_s: float
) -> ReportedWait:
    """Return the wait of the replicas that hold up the others, all those of one reason."""
    times = _restart_times(job, now, backoff, patience_s)
    longest: dict[tuple[int, str], tuple[ReplicaWait, list[str]]] = {}
    requeue_after_s: float | None = None
    for replica, found in replica_waits(job, observed, times, job.status.restarts):
        if found.since is not None:
            left_s = patience_s - (now - found.since).total_seconds()
            if patience_s and left_s > 0:
                requeue_after_s = shortest_wait(requeue_after_s, left_s)
                continue
        longest.setdefault((found.stage, found.reason), (found, []))[1].append(str(replica))
    total = len(observed.replicas)
    if requeue_after_s is not None:
        requeue_after_s = max(requeue_after_s, min(total / _REPLICAS_PER_S, _MAX_BETWEEN_CHECKS_S))
    if not longest:
        return ReportedWait(None, requeue_after_s)
    wait, names = longest[min(longest)]
    count = f" ({len(names)} of {total} replicas)" if total > 1 else ""
    verb = "waits" if len(names) == 1 else "wait"
    reported = _reported(wait.reason, f"{first_names(names)}{count} {verb}: {wait.text}")
    return attrs.evolve(reported, requeue_after_s=requeue_after_s)


def _restart_times(
    job: Job, now: datetime.datetime, backoff: Backoff, patience_s: float
) -> Mapping[str, datetime.datetime]:
    """Return when failed replicas restart, of those whose back-off is worth a message."""
    times: dict[str, datetime.datetime] = {}
    for name, record in job.status.restarts.items():
        due = next_restart_at(record, backoff)
        # The membership plan replaces elastic workers.
        if due is None or due <= now or (job.elasticity and name.startswith(f"{WORKER}-")):
            continue
        if (due - record.finished_at).total_seconds() >= patience_s:
            times[name] = due
    return times


def _reported(reason: str, message: str) -> ReportedWait:
    return ReportedWait(Waiting(reason, truncated(message)))


def _with_condition(
    status: JobStatus, waiting: Waiting | None, now: datetime.datetime
) -> tuple[Condition, ...]:
    if waiting is None:
        return conditions.without_condition(status.conditions, conditions.WAITING)
    new = Condition.at(now, conditions.WAITING, waiting.reason, waiting.message)
    return conditions.with_condition(status.conditions, new)
