"""When a failed replica may restart: back-off per replica, counted in the status.

Pure. The count and the time of the last termination are persistent, so every controller computes
the same wait.
"""

import datetime
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, WORKER
from dlctl.api.status.job_status import JobStatus, RestartRecord
from dlctl.backoff import Backoff
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState

# A run of ten minutes resets the count.
RESTART_BACKOFF: Final = Backoff(base_s=10.0, cap_s=300.0, reset_s=600.0)


def record_restarts(
    status: JobStatus, observed: Observed, backoff: Backoff
) -> Mapping[str, RestartRecord]:
    """Return the restarts including newly failed replicas, counting each pod once.

    Restarts in place are added to the failures when the pod is deleted, since its own count is
    lost.
    """
    restarts = dict(status.restarts)
    for one in observed.replicas:
        name = str(one.replica)
        if one.state is ReplicaState.FAILED_RETRYABLE:
            restarts[name] = _with_termination(restarts.get(name), one, backoff)
        elif _is_deleted_after_restarts(status, one):
            restarts[name] = _with_deletion(restarts.get(name), one)
    if observed.launcher is not None and observed.launcher.last_failure is not None:
        name = str(LAUNCHER_REPLICA)
        restarts[name] = _with_attempt(restarts.get(name), observed.launcher)
    return restarts


def next_restart(
    old: RestartRecord | None,
    failed: ObservedReplica,
    backoff: Backoff,
    now: datetime.datetime,
) -> RestartRecord:
    """Return the restarts of a replica after its newest failure, whose pod may be gone."""
    if failed.pod is not None and failed.termination is not None:
        return _with_termination(old, failed, backoff)
    ran_s = (now - old.finished_at).total_seconds() if old else 0.0
    ends = old.consecutive_ends if old and ran_s < backoff.reset_s else 0
    return RestartRecord(
        failures=old.failures if old else 0,
        consecutive_ends=ends + 1,
        pod_uid=failed.pod.metadata.uid if failed.pod else "",
        reason="Deleted",
        finished_at=now,
    )


def next_restart_at(restart: RestartRecord | None, backoff: Backoff) -> datetime.datetime | None:
    """Return when a replica may restart; None if it need not wait."""
    if restart is None or not restart.consecutive_ends:
        return None
    return restart.finished_at + datetime.timedelta(
        seconds=backoff.delay_s(restart.consecutive_ends)
    )


def _with_termination(
    old: RestartRecord | None, failed: ObservedReplica, backoff: Backoff
) -> RestartRecord:
    if failed.pod is None or failed.termination is None:
        raise ValueError(f"{failed.replica} failed without a terminated pod")
    terminated = failed.termination
    if old and old.pod_uid == failed.pod.metadata.uid:
        return old
    ran_s = (
        (terminated.time - terminated.started_at).total_seconds() if terminated.started_at else 0.0
    )
    ends = old.consecutive_ends if old and ran_s < backoff.reset_s else 0
    return RestartRecord(
        failures=(old.failures if old else 0)
        + (not terminated.is_disruption)
        + failed.restarts_in_place,
        consecutive_ends=ends + 1,
        pod_uid=failed.pod.metadata.uid,
        reason=terminated.reason,
        finished_at=terminated.time.replace(microsecond=0),
        exit_code=terminated.exit_code,
    )


def _with_attempt(old: RestartRecord | None, launcher: LauncherState) -> RestartRecord:
    """Return the failed attempts of a launcher that its Job retries, so that the last is known."""
    end, pod = launcher.last_failure, launcher.last_failed_pod
    if end is None or pod is None:
        raise ValueError("the launcher has not failed")
    uid, ended_at = pod.metadata.uid, end.time.replace(microsecond=0)
    if old and (old.finished_at > ended_at or (old.pod_uid, old.finished_at) == (uid, ended_at)):
        return old
    if old and old.pod_uid == uid and end.is_ahead:
        return old
    return RestartRecord(
        failures=(old.failures if old else 0) + (not end.is_disruption),
        consecutive_ends=(old.consecutive_ends if old else 0) + 1,
        pod_uid=uid,
        reason=end.reason,
        finished_at=ended_at,
        exit_code=end.exit_code,
    )


def _is_deleted_after_restarts(status: JobStatus, one: ObservedReplica) -> bool:
    """Return whether a pod that the kubelet restarted in place is being deleted."""
    # Restarts of elastic workers are counted at their termination, for their replacements.
    elastic = status.membership is not None and one.replica.type == WORKER
    return one.state is ReplicaState.TERMINATING and one.restarts_in_place > 0 and not elastic


def _with_deletion(old: RestartRecord | None, one: ObservedReplica) -> RestartRecord:
    """Return the restarts after a deletion: adds restarts in place, but no end or back-off."""
    if one.pod is None or one.pod.metadata.deletion_requested_at is None:
        raise ValueError(f"{one.replica} is terminating without a deleted pod")
    uid, requested_at = one.pod.metadata.uid, one.pod.metadata.deletion_requested_at
    if old is None:
        return RestartRecord(
            one.restarts_in_place, 0, uid, "Deleted", requested_at.replace(microsecond=0)
        )
    if old.pod_uid == uid:
        return old
    return attrs.evolve(old, failures=old.failures + one.restarts_in_place, pod_uid=uid)
