"""Pods that are still there long after they were to be gone: nobody is left to let them go.

Pure. A node that has died cannot say so, and from here looks like one that is merely cut off.
"""

import datetime
from collections.abc import Iterable

import attrs

from dlctl.api.pods import Pod


@attrs.frozen
class ForceDeletions:
    """The leaving pods whose time is over, and the seconds until the next one's is."""

    pods: tuple[Pod, ...] = ()
    next_s: float | None = None


def force_deletions(pods: Iterable[Pod], now: datetime.datetime, after_s: float) -> ForceDeletions:
    """Find the pods to delete by force: ``after_s`` after they were to be gone; 0 means never."""
    if not after_s:
        return ForceDeletions()
    due, waits = [], []
    for pod in pods:
        gone_by = _deletion_time(pod)
        if gone_by is None:
            continue
        wait_s = (gone_by - now).total_seconds() + after_s
        if wait_s > 0:
            waits.append(wait_s)
        else:
            due.append(pod)
    return ForceDeletions(tuple(due), min(waits, default=None))


def _deletion_time(pod: Pod) -> datetime.datetime | None:
    """Return when a pod was to be gone; None if it is to stay, or force would change nothing."""
    meta = pod.metadata
    if meta.deletion_grace_period_seconds == 0 and meta.finalizers:
        # It has no grace left to be taken: what it waits for is whoever set the finalizers.
        return None
    return meta.deletion_timestamp
