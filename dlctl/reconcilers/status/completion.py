"""Whether a job has ended, how, and the first cause. Pure.

Once the ``success_replicas`` have succeeded, later failures of others do not matter.
"""

import datetime
from collections.abc import Sequence

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job
from dlctl.api.status.job_status import Failure
from dlctl.api.status.verdict import Verdict
from dlctl.errors import truncated
from dlctl.name_lists import first_messages
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.status.quorum import unmet
from dlctl.reconcilers.status.replica_terminations import first_terminations


@attrs.frozen
class Completion:
    """The end of a job: a success if it has no failure."""

    failure: Failure | None = None
    # When it ended, if that is known.
    time: datetime.datetime | None = None


def completion(
    job: Job, observed: Observed, now: datetime.datetime, verdict: Verdict | None = None
) -> Completion | None:
    """Return how the job has ended, or None while it has not.

    ``verdict`` is the one on its last attempt, if that has ended.
    """
    launcher = observed.launcher
    if launcher is not None and launcher.is_finished and not job.has_failure_policy:
        return _launcher_completion(job, observed, launcher)
    at_once = not job.total_replicas or job.success_policy.succeeds_immediately
    if at_once and not job.is_partial and job.status.phase.is_before_run:
        # As in training-operator; a job that is scaled down may be scaled up again.
        return Completion()
    states = observed.states
    done = [states.get(r) is ReplicaState.SUCCEEDED for r in job.success_policy.success_replicas]
    if any(done) if job.success_policy.any_succeeds else done and all(done):
        return Completion(time=_completion_time(launcher))
    # A permanent failure of any replica ends the job: the others would wait for it forever.
    failed = (o for o in observed.replicas if o.state is ReplicaState.FAILED_PERMANENT)
    required = (o for o in failed if job.success_policy.requires(o.replica))
    failures = [failure for o in required if (failure := o.failure) is not None]
    failures += unmet(job, observed, now)
    if not failures:
        return None
    return Completion(_first_failure(failures, verdict))


def _launcher_completion(job: Job, observed: Observed, launcher: LauncherState) -> Completion:
    """Return how a job has ended whose launcher's Job has ended."""
    if launcher.failure is None:
        return Completion(time=_completion_time(launcher))
    message = launcher.failure.message
    # A launcher fails because a worker does, and its own message may not say so.
    if workers := _failed_workers(job, observed):
        message = f"{message}; {workers}"
    return Completion(attrs.evolve(launcher.failure, message=truncated(message)))


def _completion_time(launcher: LauncherState | None) -> datetime.datetime | None:
    """Return when a launcher's Job has completed; None if it has not, or there is none."""
    batch_job = launcher.batch_job if launcher else None
    return batch_job.status.completion_time if batch_job else None


def _failed_workers(job: Job, observed: Observed) -> str:
    """Name workers that have failed, with how they ended; empty if none has."""
    failed = [o for o in observed.replicas if o.termination and o.termination.exit_code != 0]
    if failed:
        return first_terminations(failed)
    replaced = sorted(job.status.restarts.items())
    workers = [f"{n}: {r.describe()}" for n, r in replaced if n != str(LAUNCHER_REPLICA)]
    return first_messages(workers)


def _first_failure(failures: Sequence[Failure], verdict: Verdict | None) -> Failure:
    """Return the failure of the replica to blame, if it is one of these, or else the first."""
    blamed = verdict.replica if verdict else ""
    of_blamed = (each for each in failures if blamed and each.replica == blamed)
    return next(of_blamed, None) or min(failures, key=lambda each: each.time)
