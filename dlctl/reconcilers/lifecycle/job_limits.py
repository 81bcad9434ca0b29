"""The limits of a job's run policy: whether one is exceeded, and when the next one will be.

Pure. Everything is counted from the status, so a restarted controller counts the same.
"""

import datetime
from collections.abc import Mapping
from typing import Final

from dlctl.api.job import WORKER, Job
from dlctl.api.status.condition_messages import backoff_limit_reached
from dlctl.api.status.job_status import Failure, JobStatus, RestartRecord
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState

DEADLINE_EXCEEDED = "DeadlineExceeded"
BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
_ACTIVE: Final = frozenset({ReplicaState.PENDING, ReplicaState.RUNNING})


def exceeded_limit(
    job: Job, status: JobStatus, observed: Observed, now: datetime.datetime
) -> Failure | None:
    """Return the failure of a job that has exceeded one of its limits, or None."""
    limit = job.run_policy.backoff_limit
    # As Kubeflow counts: a limit of 3 is reached by the third failure, before a third restart.
    if limit is not None and _failures(job, status.restarts, observed) >= max(limit, 1):
        return backoff_limit_failure(job, now)
    left_s = deadline_left_s(job, status, now)
    if left_s is not None and left_s <= 0:
        cause = "it was active longer than specified deadline"
        message = f"Job {job.key.name} has failed because {cause}"
        return _job_failure(DEADLINE_EXCEEDED, message, now)
    return None


def backoff_limit_failure(job: Job, now: datetime.datetime) -> Failure:
    """Return the failure of a job that has reached its restart limit."""
    return _job_failure(BACKOFF_LIMIT_EXCEEDED, backoff_limit_reached(job.key.name), now)


def deadline_left_s(job: Job, status: JobStatus, now: datetime.datetime) -> float | None:
    """Return the seconds until the job's deadline; None if it has none or has not started.

    With a deadline for its start, it is active from its first run on.
    """
    starts = job.run_policy.starting_deadline_s is None
    since = status.start_time if starts else status.first_run_time
    return _left_s(since, job.run_policy.active_deadline_s, now)


def ttl_left_s(job: Job, now: datetime.datetime) -> float | None:
    """Return the seconds until a finished job is deleted; None if it has no TTL."""
    return _left_s(job.status.completion_time, job.run_policy.ttl_after_finished_s, now)


def _left_s(
    since: datetime.datetime | None, span_s: int | None, now: datetime.datetime
) -> float | None:
    if since is None or span_s is None:
        return None
    return span_s - (now - since).total_seconds()


def _failures(job: Job, restarts: Mapping[str, RestartRecord], observed: Observed) -> int:
    """Count the failures of all replicas: those of past pods, and restarts in active pods.

    Restarts in place are forgiven once a pod has finished, as in training-operator. Elastic workers
    have their own limit.
    """
    elastic_prefix = f"{WORKER}-" if job.elasticity else None
    replaced = sum(
        restart.failures
        for name, restart in restarts.items()
        if elastic_prefix is None or not name.startswith(elastic_prefix)
    )
    active = (
        one
        for one in observed.replicas
        if one.state in _ACTIVE and not (elastic_prefix and one.replica.type == WORKER)
    )
    return replaced + sum(one.restarts_in_place for one in active)


def _job_failure(reason: str, message: str, now: datetime.datetime) -> Failure:
    return Failure(replica="", pod="", reason=reason, message=message, time=now)
