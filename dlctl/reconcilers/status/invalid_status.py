"""The status of a job whose spec or content is invalid. Pure."""

import datetime
from collections.abc import Iterator

import attrs

from dlctl.api import conditions
from dlctl.api.conditions import Condition
from dlctl.api.job import Job
from dlctl.api.status import JobPhase, JobState, JobStatus
from dlctl.reconcilers.event_note import EventNote


def invalid_reason(kind: str) -> str:
    """Return the reason of the conditions and events about invalid jobs of a kind."""
    return f"{kind}Invalid"


def invalid_status(
    status: JobStatus, kind: str, generation: int, message: str, now: datetime.datetime
) -> tuple[JobStatus, EventNote]:
    """Return the status of a job that fails permanently before any of its pods has run.

    Quota managers then release its quota, so a corrected spec must not revive it.
    """
    now = now.replace(microsecond=0)
    reason = invalid_reason(kind)
    kept = conditions.without_condition(status.conditions, conditions.BLOCKED)
    failed = Condition.at(now, conditions.FAILED, reason, message)
    failed_status = attrs.evolve(
        status,
        phase=JobPhase.FAILED,
        state=JobState.FAILED,
        reason=message,
        written_by_other_operator=False,
        conditions=conditions.with_condition(kept, failed),
        completion_time=now,
        observed_generation=generation,
    )
    return failed_status, EventNote("Warning", reason, message)


def malformed_status(
    status: JobStatus, kind: str, generation: int, message: str, now: datetime.datetime
) -> JobStatus:
    """Return the status of a job whose content cannot be processed; its state is kept."""
    now = now.replace(microsecond=0)
    blocked = Condition.at(now, conditions.BLOCKED, invalid_reason(kind), message)
    new_conditions = conditions.with_condition(status.conditions, blocked)
    return attrs.evolve(status, conditions=new_conditions, observed_generation=generation)


def invalid_spec_events(job: Job, new: JobStatus) -> Iterator[EventNote]:
    """Yield the spec error of a job that has started, if the new status reports it first."""
    reason = invalid_reason(job.resource.kind)
    known = {c.message for c in job.status.conditions if c.reason == reason}
    if any(c.reason == reason and c.message not in known for c in new.conditions):
        yield EventNote("Warning", reason, job.invalid_reason)
