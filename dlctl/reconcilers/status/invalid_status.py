"""The plans and events for a job whose spec or content is invalid. Pure."""

import datetime
from collections.abc import Iterator

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.reconcilers.plan import Plan


def invalid_plan(job: Job, message: str, now: datetime.datetime) -> Plan:
    """Return the plan that fails a job permanently before any of its pods has run.

    Quota managers then release its quota, so a corrected spec must not revive it.
    """
    now = now.replace(microsecond=0)
    reason, text = job.messages.invalid_reason(), job.messages.invalid(message)
    kept = conditions.without_condition(job.status.conditions, conditions.WAITING)
    failed = Condition.at(now, conditions.FAILED, reason, text)
    failed_status = attrs.evolve(
        job.status,
        phase=JobPhase.FAILED,
        state=JobState.FAILED,
        reason=job.messages.invalid_status_reason(message),
        written_by_other_operator=False,
        conditions=conditions.with_condition(kept, failed),
        completion_time=now,
        observed_generation=job.generation,
    )
    return Plan(failed_status, notes=(EventNote("Warning", reason, text),))


def malformed_plan(job: Job, message: str, now: datetime.datetime) -> Plan:
    """Return the plan that reports why a job's content cannot be processed; its state is kept."""
    now = now.replace(microsecond=0)
    waiting = Condition.at(now, conditions.WAITING, job.messages.invalid_reason(), message)
    new_conditions = conditions.with_condition(job.status.conditions, waiting)
    status = attrs.evolve(job.status, conditions=new_conditions, observed_generation=job.generation)
    return Plan(status, notes=tuple(invalid_job_events(job, status, message)), requeue=True)


def invalid_job_events(job: Job, new: JobStatus, message: str) -> Iterator[EventNote]:
    """Yield the error of a job that continues, if the new status reports it first."""
    reason = job.messages.invalid_reason()
    known = {c.message for c in job.status.conditions if c.reason == reason}
    if any(c.reason == reason and c.message not in known for c in new.conditions):
        yield EventNote("Warning", reason, message)
