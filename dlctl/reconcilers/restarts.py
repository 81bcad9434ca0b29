"""When a replica that was lost may run again: back-off per replica, counted in the status.

Pure. The count and the time of the last end are durable, so the wait is the same whoever
computes it.
"""

import datetime
from collections.abc import Mapping

import attrs

from dlctl.api.elastic import WORKER
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
    """Return the restarts with the newly lost replicas added, each pod once.

    What the kubelet restarted in a pod that goes is added to the failures: its count goes with it.
    """
    restarts = dict(status.restarts)
    for one in observed.replicas:
        name = str(one.replica)
        if one.situation is Situation.LOST:
            restarts[name] = _counted(restarts.get(name), one, backoff)
        elif _goes_with_restarts(status, one):
            restarts[name] = _deleted(restarts.get(name), one)
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
    if restart is None or not restart.tries:
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
        failures=(old.failures if old else 0) + (not end.disruption) + lost.restarts_in_place,
        tries=tries + 1,
        pod_uid=lost.pod.metadata.uid,
        reason=end.reason,
        ended=end.time.replace(microsecond=0),
        exit_code=end.exit_code,
    )


def _goes_with_restarts(status: JobStatus, one: ObservedReplica) -> bool:
    """Tell whether the pod is deleted of a replica that the kubelet has restarted in place."""
    # The restarts of elastic workers are counted when they have ended, for their successors.
    elastic = status.roster is not None and one.replica.type == WORKER
    return one.situation is Situation.TERMINATING and one.restarts_in_place > 0 and not elastic


def _deleted(old: Restart | None, one: ObservedReplica) -> Restart:
    """Return the restarts with those in a pod that somebody deletes: no try, and no back-off."""
    if one.pod is None or one.pod.metadata.deletion_requested is None:
        raise ValueError(f"{one.replica} is terminating without a pod that is deleted")
    uid, asked = one.pod.metadata.uid, one.pod.metadata.deletion_requested
    if old is None:
        return Restart(one.restarts_in_place, 0, uid, "Deleted", asked.replace(microsecond=0))
    if old.pod_uid == uid:
        return old
    return attrs.evolve(old, failures=old.failures + one.restarts_in_place, pod_uid=uid)
