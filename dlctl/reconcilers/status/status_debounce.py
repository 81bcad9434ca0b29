"""Holds back status writes that soon would be followed by another one. Pure.

Without it, a job of 1,000 replicas would write 1,000 statuses while it starts, a waiting job one
for each message of its scheduler, and a small job one just before its pods run.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.job import Job
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.api.status.verdict import Attempt
from dlctl.durations import shortest_wait
from dlctl.reconcilers.plan import Plan

# Bounds of the interval between two such writes, in seconds; small jobs have the minimum.
MAX_INTERVAL_S: Final = 10.0
MIN_INTERVAL_S: Final = 1.0
_REPLICAS_PER_S: Final = 100
# Children that may be created before the first status of their job.
_CHILDREN_BEFORE_STATUS: Final = 64
# How long the first status waits for what its children do.
_FIRST_STATUS_S: Final = 0.1
# An older job without a status may have run, and ended, without one.
_NEW_JOB_S: Final = 120.0


def defer_first_status(job: Job, plan: Plan, age_s: float) -> Plan:
    """Return the plan of a new job without its status, if its children show as much.

    The children are created first, and the next plan writes the status. The caller ensures that
    the next plan follows, and calls this once per job. ``age_s`` is the job's age in seconds.
    """
    children = len(plan.pods) + len(plan.services)
    if job.status.phase is not JobPhase.NEW or not 0 < children <= _CHILDREN_BEFORE_STATUS:
        return plan
    if age_s > _NEW_JOB_S:
        return plan
    if plan.status.phase is not JobPhase.CREATING or _has_decisions(plan.status):
        return plan
    requeue_after_s = shortest_wait(plan.requeue_after_s, _FIRST_STATUS_S)
    return attrs.evolve(plan, status=job.status, notes=(), requeue_after_s=requeue_after_s)


def _has_decisions(status: JobStatus) -> bool:
    """Return whether children are created according to the status, not only to the spec."""
    return bool(status.version or status.membership or status.attempts)


def debounce_counts(job: Job, plan: Plan, since_write_s: float) -> Plan:
    """Return the plan, with the old status if the new one differs only in counts.

    ``since_write_s`` is the number of seconds since the last status write.
    """
    wait_s = _interval_s(job, plan.status) - since_write_s
    if wait_s <= 0 or not _differs_in_counts_only(job, plan.status):
        return plan
    # The events about the status are recorded with the delayed write.
    requeue_after_s = shortest_wait(plan.requeue_after_s, wait_s)
    return attrs.evolve(plan, status=job.status, notes=(), requeue_after_s=requeue_after_s)


def _interval_s(job: Job, new: JobStatus) -> float:
    progress = job.messages.progress_conditions
    waits = [conditions.find(status.conditions, conditions.WAITING) for status in (job.status, new)]
    if waits[0] != waits[1]:
        # Schedulers' messages follow each change in the cluster.
        return MAX_INTERVAL_S
    if any(condition.type in progress for condition in job.status.conditions):
        # Elastic jobs: changes of members are written at once, and counts matter less.
        return MAX_INTERVAL_S
    if not progress and _counted(new) < job.total_replicas:
        # Others are still to start, which one status is to report.
        return MAX_INTERVAL_S
    return min(max(job.total_replicas / _REPLICAS_PER_S, MIN_INTERVAL_S), MAX_INTERVAL_S)


def _differs_in_counts_only(job: Job, new: JobStatus) -> bool:
    old = job.status
    if old == new:
        return False
    # Completions are written at once: a replica whose pod is deleted before would run again.
    return _completed(old) == _completed(new) and old == attrs.evolve(
        new,
        attempts=_with_old_collateral(old.attempts, new.attempts),
        replica_statuses=old.replica_statuses,
        conditions=_with_old_wait(job, _without_progress(job, new)),
    )


def _with_old_collateral(old: tuple[Attempt, ...], new: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """Return the new attempts with the replicas that had fallen with the last one before.

    Each of the others that falls later would be a write of its own.
    """
    before = old[-1].verdict if old else None
    after = new[-1].verdict if new else None
    if before is None or after is None:
        return new
    verdict = attrs.evolve(
        after, collateral=before.collateral, collateral_count=before.collateral_count
    )
    return (*new[:-1], attrs.evolve(new[-1], verdict=verdict))


def _counted(status: JobStatus) -> int:
    """Return the number of replicas that have started."""
    counts = (replica.count_by_state.items() for replica in status.replica_statuses)
    return sum(n for of_type in counts for state, n in of_type if state is not JobState.UNKNOWN)


def _completed(status: JobStatus) -> Mapping[str, frozenset[int]]:
    return {replica.type: replica.completed_indexes for replica in status.replica_statuses}


def _without_progress(job: Job, new: JobStatus) -> tuple[Condition, ...]:
    """Return the new conditions without new ones that only report progress."""
    known = {condition.type for condition in job.status.conditions}
    progress = job.messages.progress_conditions
    return tuple(c for c in new.conditions if c.type in known or c.type not in progress)


def _with_old_wait(job: Job, new: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Return the new conditions with the old Waiting, unless there is a new one or a new reason."""
    old_wait = conditions.find(job.status.conditions, conditions.WAITING)
    new_wait = conditions.find(new, conditions.WAITING)
    if old_wait is None or (new_wait is not None and new_wait.reason != old_wait.reason):
        return new
    return (old_wait, *conditions.without_condition(new, conditions.WAITING))
