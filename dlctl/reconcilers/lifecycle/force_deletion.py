"""Pods that still exist long after their deletion timestamp, because no kubelet removes them.

Pure. A dead node cannot confirm that a pod has stopped, and looks like one that is disconnected.
All pods on one node are due at the same time, so that a gang waits for a lost node only once.
"""

import datetime
from collections.abc import Iterable, Mapping

import attrs

from dlctl.api.objects.pods import Pod
from dlctl.reconcilers.nodes.node_states import LostNode


@attrs.frozen
class ForceDeletions:
    """The terminating pods to force-delete now, and the seconds until the next one is due."""

    pods: tuple[Pod, ...] = ()
    requeue_after_s: float | None = None


def force_deletions(
    pods: Iterable[Pod],
    now: datetime.datetime,
    after_s: float,
    lost_nodes: Mapping[str, LostNode] | None = None,
) -> ForceDeletions:
    """Return the terminating pods that are due.

    Those on a node that is out of service are due at once, as in Kubernetes itself; the others when
    they are ``after_s`` past their deletion timestamp, or their node has been silent for as long. 0
    disables the latter two.
    """
    lost_nodes = lost_nodes or {}
    if not after_s and not lost_nodes:
        return ForceDeletions()
    due, waits = [], []
    for pod in pods:
        deletion_time = _deletion_time(pod)
        if deletion_time is None:
            continue
        lost = lost_nodes.get(pod.node_name)
        wait_s = _wait_s(deletion_time, lost, now, after_s)
        if wait_s is None:
            continue
        if wait_s > 0:
            waits.append(wait_s)
        else:
            due.append(pod)
    return ForceDeletions(tuple(due), min(waits, default=None))


def _wait_s(
    deletion_time: datetime.datetime,
    lost: LostNode | None,
    now: datetime.datetime,
    after_s: float,
) -> float | None:
    """Return the seconds until a terminating pod is due; None if it never is."""
    if lost is not None and lost.out_of_service:
        return 0.0
    if not after_s:
        return None
    since = deletion_time
    if lost is not None and lost.silent_since is not None:
        since = min(deletion_time, lost.silent_since)
    return (since - now).total_seconds() + after_s


def _deletion_time(pod: Pod) -> datetime.datetime | None:
    """Return a pod's deletion timestamp; None if it has none, or force would change nothing."""
    meta = pod.metadata
    if meta.deletion_grace_period_seconds == 0 and meta.finalizers:
        # Its grace period is zero already: it waits for its finalizers.
        return None
    return meta.deletion_timestamp
