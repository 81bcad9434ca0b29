"""When a replica that was lost may run again: back-off per replica, counted in the status.

Pure. The count and the time of the last end are durable, so the wait is the same whoever
computes it.
"""

import datetime
from collections.abc import Mapping

import attrs

from dlctl.api.status import JobStatus, Restart
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation


@attrs.frozen
class RestartBackoff:
    """Seconds to wait after the n-th end in a row; a run of ``reset_s`` starts the count anew."""

    first_s: float = 10
    cap_s: float = 300
    reset_s: float = 600

    def delay_s(self, tries: int) -> float:
        # 2 ** 30 is beyond any cap and still no overflow.
        return float(min(self.first_s * 2 ** min(tries - 1, 30), self.cap_s))


def counted(
    status: JobStatus, observed: Observed, backoff: RestartBackoff
) -> Mapping[str, Restart]:
    """Return the restarts with the newly lost replicas added, each pod once."""
    restarts = dict(status.restarts)
    for lost in observed.replicas:
        if lost.situation is Situation.LOST:
            name = str(lost.replica)
            restarts[name] = _counted(restarts.get(name), lost, backoff)
    return restarts


def another(
    old: Restart | None, lost: ObservedReplica, backoff: RestartBackoff, now: datetime.datetime
) -> Restart:
    """Return the restarts of a replica with its newest loss, of which no pod may be left."""
    if lost.pod is not None and lost.ending is not None:
        return _counted(old, lost, backoff)
    ran_s = (now - old.ended).total_seconds() if old else 0.0
    tries = old.tries if old and ran_s < backoff.reset_s else 0
    return Restart(
        failures=old.failures if old else 0,
        tries=tries + 1,
        pod_uid=lost.pod.metadata.uid if lost.pod else "",
        reason="Deleted",
        ended=now,
    )


def due(restart: Restart | None, backoff: RestartBackoff) -> datetime.datetime | None:
    """Return when a replica may run again; None if nothing keeps it waiting."""
    if restart is None:
        return None
    return restart.ended + datetime.timedelta(seconds=backoff.delay_s(restart.tries))


def _counted(old: Restart | None, lost: ObservedReplica, backoff: RestartBackoff) -> Restart:
    if lost.pod is None or lost.ending is None:
        raise ValueError(f"{lost.replica} is lost without a pod that ended")
    end = lost.ending
    if old and old.pod_uid == lost.pod.metadata.uid:
        return old
    ran_s = (end.time - end.started).total_seconds() if end.started else 0.0
    tries = old.tries if old and ran_s < backoff.reset_s else 0
    return Restart(
        failures=(old.failures if old else 0) + (not end.disruption),
        tries=tries + 1,
        pod_uid=lost.pod.metadata.uid,
        reason=end.reason,
        ended=end.time.replace(microsecond=0),
        exit_code=end.exit_code,
    )
