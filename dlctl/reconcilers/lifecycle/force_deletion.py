"""Pods that still exist long after their deletion timestamp, because no kubelet removes them.

Pure. A dead node cannot confirm that a pod has stopped, and looks like one that is disconnected.
"""

import datetime
from collections.abc import Iterable

import attrs

from dlctl.api.pods import Pod


@attrs.frozen
class ForceDeletions:
    """The terminating pods to force-delete now, and the seconds until the next one is due."""

    pods: tuple[Pod, ...] = ()
    next_s: float | None = None


def force_deletions(pods: Iterable[Pod], now: datetime.datetime, after_s: float) -> ForceDeletions:
    """Return the pods that are ``after_s`` past their deletion timestamp; 0 disables it."""
    if not after_s:
        return ForceDeletions()
    due, waits = [], []
    for pod in pods:
        deletion_time = _deletion_time(pod)
        if deletion_time is None:
            continue
        wait_s = (deletion_time - now).total_seconds() + after_s
        if wait_s > 0:
            waits.append(wait_s)
        else:
            due.append(pod)
    return ForceDeletions(tuple(due), min(waits, default=None))


def _deletion_time(pod: Pod) -> datetime.datetime | None:
    """Return a pod's deletion timestamp; None if it has none, or force would change nothing."""
    meta = pod.metadata
    if meta.deletion_grace_period_seconds == 0 and meta.finalizers:
        # Its grace period is zero already: it waits for its finalizers.
        return None
    return meta.deletion_timestamp
