"""The deadline until which a job has to run, and when it first ran. Pure.

It counts from the job's creation or resumption, so not while the job is suspended. Once the job has
run, a restart does not start it again.
"""

import datetime
from typing import Final

import attrs

from dlctl.api.job import Job
from dlctl.api.status import conditions
from dlctl.api.status.job_status import Failure, JobPhase, JobStatus
from dlctl.api.status.verdict import Cause
from dlctl.api.status.waiting import Waiting
from dlctl.api.status.waiting_reasons import CONFIGURATION_REASONS
from dlctl.errors import truncated

STARTING_DEADLINE_EXCEEDED: Final = "StartingDeadlineExceeded"


def with_first_run(job: Job, status: JobStatus, now: datetime.datetime) -> JobStatus:
    """Return the status with the time at which the job first ran, for jobs with such a deadline."""
    if job.run_policy.starting_deadline_s is None:
        return status
    if job.status.phase in (JobPhase.NEW, JobPhase.SUSPENDED):
        status = attrs.evolve(status, first_run_time=None)
    if status.phase is JobPhase.RUNNING and status.first_run_time is None:
        return attrs.evolve(status, first_run_time=now)
    return status


def starting_deadline_left_s(job: Job, status: JobStatus, now: datetime.datetime) -> float | None:
    """Return the seconds that a job has until it must run; None if it has run, or needs not."""
    deadline_s = job.run_policy.starting_deadline_s
    if deadline_s is None or status.first_run_time is not None or status.start_time is None:
        return None
    return deadline_s - (now - status.start_time).total_seconds()


def starting_deadline_failure(job: Job, waiting: Waiting | None, now: datetime.datetime) -> Failure:
    """Return the failure of a job that did not run in time, with what it waited for."""
    cause = f": {waiting.message}" if waiting else ""
    message = (
        f"Job {job.key.name} has failed because it did not run within "
        f"{job.run_policy.starting_deadline_s} s{cause}"
    )
    return Failure(
        replica="",
        pod="",
        reason=STARTING_DEADLINE_EXCEEDED,
        message=truncated(message),
        time=now,
    )


def starting_cause(status: JobStatus) -> Cause:
    """Return the cause of a start that took too long, from what the status says it waits for."""
    waiting = conditions.find(status.conditions, conditions.WAITING)
    if waiting is None:
        return Cause.DEADLINE
    return Cause.CONFIGURATION if waiting.reason in CONFIGURATION_REASONS else Cause.PLATFORM
