"""The next write of a launcher's Job: to create, suspend or resume it, or to set its TTL. Pure.

One write at a time: each follows from what the stores show of the one before. With a failure
policy, a Job runs a launcher once: it is deleted, and created again for the next run.
"""

import enum

import attrs

from dlctl.api.job import Job
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState


class LauncherJobAction(enum.Enum):
    """The action of one write on a launcher's Job."""

    CREATE = enum.auto()
    CREATE_SUSPENDED = enum.auto()
    SUSPEND = enum.auto()
    # The server lets the template of a suspended Job change only before its start.
    CLEAR_START_TIME = enum.auto()
    RESUME = enum.auto()
    SET_TTL = enum.auto()
    # mpi-operator sets it when it creates the Job.
    REMOVE_TTL = enum.auto()
    # Foreground deletion: the Job is gone only after its pods.
    DELETE = enum.auto()

    @property
    def creates(self) -> bool:
        return self in (LauncherJobAction.CREATE, LauncherJobAction.CREATE_SUSPENDED)


@attrs.frozen
class LauncherJobWrite:
    """An action, and the existing Job unless it is created."""

    action: LauncherJobAction
    existing: BatchJob | None = None


def next_write(job: Job, launcher: LauncherState, *, may_start: bool) -> LauncherJobWrite | None:
    """Return the next write for a job that has not ended; None if its launcher is as it should be.

    ``may_start``: whether a launcher that does not run yet may do so now.
    """
    existing = launcher.batch_job
    suspended = job.run_policy.suspended
    if existing is None:
        return None if job.is_partial else _creation(suspended=suspended, may_start=may_start)
    if existing.metadata.is_terminating or existing.is_finished:
        return None
    if suspended:
        return suspension(launcher)
    if not existing.is_suspended:
        return _ttl_removal(job, existing)
    if not may_start or job.is_partial:
        return None
    if existing.status.start_time is not None:
        return LauncherJobWrite(LauncherJobAction.CLEAR_START_TIME, existing)
    return LauncherJobWrite(LauncherJobAction.RESUME, existing)


def suspension(launcher: LauncherState) -> LauncherJobWrite | None:
    """Return the write that stops a launcher; None if nothing can run."""
    existing = launcher.batch_job
    if existing is None or existing.metadata.is_terminating or existing.is_finished:
        return None
    return None if existing.is_suspended else LauncherJobWrite(LauncherJobAction.SUSPEND, existing)


def deletion(launcher: LauncherState) -> LauncherJobWrite | None:
    """Return the write that deletes a launcher's Job; None if there is none, or it is leaving."""
    existing = launcher.batch_job
    if existing is None or existing.metadata.is_terminating:
        return None
    return LauncherJobWrite(LauncherJobAction.DELETE, existing)


def suspended_write(job: Job, launcher: LauncherState) -> LauncherJobWrite | None:
    """Return the next write for a job that is suspended, or whose suspension is unfinished."""
    if job.has_failure_policy and launcher.is_failed_or_outdated:
        return deletion(launcher)
    if launcher.batch_job is not None:
        return suspension(launcher)
    return next_write(job, launcher, may_start=False)


def end_write(job: Job, launcher: LauncherState, *, failed: bool) -> LauncherJobWrite | None:
    """Return the next write for an ended job; the launcher of a failed job may still run."""
    stop = suspension(launcher) if failed and not launcher.is_ending else None
    return stop or ttl_write(job, launcher)


def ttl_write(job: Job, launcher: LauncherState) -> LauncherJobWrite | None:
    """Return the write of the TTL, once the status of the job says how the launcher has ended.

    Before that, a Job that is gone could have ended or not, and is created again.
    """
    existing, wanted = launcher.batch_job, job.launcher_job
    if existing is None or wanted is None or wanted.ttl_after_finished_s is None:
        return None
    is_set = existing.spec.ttl_seconds_after_finished == wanted.ttl_after_finished_s
    if is_set or existing.metadata.is_terminating:
        return None
    return LauncherJobWrite(LauncherJobAction.SET_TTL, existing)


def _ttl_removal(job: Job, existing: BatchJob) -> LauncherJobWrite | None:
    """Return the write that removes a TTL, so that the Job stays until its end is recorded."""
    ttl_s = existing.spec.ttl_seconds_after_finished
    wanted_s = job.launcher_job.ttl_after_finished_s if job.launcher_job else None
    if ttl_s is None or ttl_s != wanted_s:
        return None
    return LauncherJobWrite(LauncherJobAction.REMOVE_TTL, existing)


def _creation(*, suspended: bool, may_start: bool) -> LauncherJobWrite | None:
    if suspended:
        return LauncherJobWrite(LauncherJobAction.CREATE_SUSPENDED)
    return LauncherJobWrite(LauncherJobAction.CREATE) if may_start else None
