"""The Job of a running job's launcher: what it needs, given what its replicas need. Pure."""

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState
from dlctl.reconcilers.launcher_job.next_write import LauncherJobWrite, deletion, next_write
from dlctl.reconcilers.lifecycle import job_restarts
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.suspended_runs import is_discarded


def with_launcher_job(job: Job, planned: Plan, observed: Observed) -> Plan:
    """Return a plan with the next write of the launcher's Job; the same if the launcher is a pod.

    The Job is created and deleted in place of the launcher's pod, if ``planned`` does that.
    """
    launcher = observed.launcher
    if job.launcher_job is None or launcher is None:
        return planned
    others = [one for one in observed.replicas if job.has_own_pod(one.replica)]
    is_ready = not job.launcher_job.waits_for_workers or all(one.is_ready for one in others)
    # One that is created follows its workers in the same plan; one that resumes does not.
    lacks_workers = launcher.batch_job is not None and any(map(job.has_own_pod, planned.pods))
    may_start = is_ready and not lacks_workers
    if not job.has_failure_policy:
        write = next_write(job, launcher, may_start=may_start)
    else:
        write = _write_with_failure_policy(job, planned, observed, launcher, may_start=may_start)
    return attrs.evolve(
        planned,
        pods=tuple(filter(job.has_own_pod, planned.pods)),
        deleted_pods=tuple(filter(observed.is_own, planned.deleted_pods)),
        kueue_held_pods=tuple(filter(observed.is_own, planned.kueue_held_pods)),
        launcher_job=write,
    )


def _write_with_failure_policy(
    job: Job, planned: Plan, observed: Observed, launcher: LauncherState, *, may_start: bool
) -> LauncherJobWrite | None:
    """Return the next write of a Job that runs a launcher once, as the failure policy decides."""
    is_due = LAUNCHER_REPLICA in planned.pods
    if launcher.batch_job is None:
        return next_write(job, launcher, may_start=may_start and is_due)
    is_replaced = not all(map(observed.is_own, planned.deleted_pods))
    if launcher.is_outdated or is_due or is_replaced or _is_lost(job, observed, launcher):
        return deletion(launcher)
    may_resume = may_start and job_restarts.may_create_pods(job, observed)
    return next_write(job, launcher, may_start=may_resume)


def _is_lost(job: Job, observed: Observed, launcher: LauncherState) -> bool:
    """Return whether another client deletes the pod of the launcher, whose Job has no other one."""
    if launcher.batch_job is None or launcher.batch_job.is_suspended:
        return False
    state, pod = observed.states.get(LAUNCHER_REPLICA), launcher.newest_pod
    return state is ReplicaState.TERMINATING and pod is not None and not is_discarded(job, pod)
