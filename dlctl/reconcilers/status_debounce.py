"""Replica counts in the status, written at a bounded rate. Pure.

A job of 1,000 replicas would write 1,000 statuses while it starts.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.conditions import Condition
from dlctl.api.job import Job
from dlctl.api.status import JobStatus
from dlctl.reconcilers.plan import Plan, earliest

# Seconds between two writes of nothing but replica counts: at most, and for small jobs.
MAX_INTERVAL_S: Final = 10.0
MIN_INTERVAL_S: Final = 1.0
_REPLICAS_PER_S: Final = 100


def debounce_counts(job: Job, plan: Plan, since_write_s: float) -> Plan:
    """Return the plan, with the last status if the new one differs in nothing but counts.

    ``since_write_s`` are the seconds since the last status was written.
    """
    wait_s = _interval_s(job) - since_write_s
    if wait_s <= 0 or not _differs_in_counts_only(job, plan.status):
        return plan
    # The events about the change are recorded with it.
    wake_s = earliest(plan.requeue_after_s, wait_s)
    return attrs.evolve(plan, status=job.status, notes=(), requeue_after_s=wake_s)


def _interval_s(job: Job) -> float:
    progress = job.messages.progress_conditions
    if any(condition.type in progress for condition in job.status.conditions):
        # Of an elastic job, the members matter, and their status is written at once.
        return MAX_INTERVAL_S
    return min(max(job.total_replicas / _REPLICAS_PER_S, MIN_INTERVAL_S), MAX_INTERVAL_S)


def _differs_in_counts_only(job: Job, new: JobStatus) -> bool:
    old = job.status
    if old == new:
        return False
    # A completed replica would run again if its pod went before its success is written.
    return _completed(old) == _completed(new) and old == attrs.evolve(
        new,
        replica_statuses=old.replica_statuses,
        conditions=_without_progress(job, new),
    )


def _completed(status: JobStatus) -> Mapping[str, frozenset[int]]:
    return {replica.type: replica.completed_indexes for replica in status.replica_statuses}


def _without_progress(job: Job, new: JobStatus) -> tuple[Condition, ...]:
    """Return the new conditions without those that only say how far a job has come."""
    known = {condition.type for condition in job.status.conditions}
    progress = job.messages.progress_conditions
    return tuple(c for c in new.conditions if c.type in known or c.type not in progress)
