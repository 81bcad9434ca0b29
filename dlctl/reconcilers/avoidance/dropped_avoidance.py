"""Dropping avoidance: a job whose pods fit only on nodes that they avoid avoids none. Pure."""

import datetime
from collections.abc import Iterable
from typing import Final

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod
from dlctl.durations import shortest_wait
from dlctl.reconcilers.children.avoided_nodes import avoided_nodes, is_avoidance_dropped
from dlctl.reconcilers.children.placement import is_unscheduled
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.plan import Plan

# How long the scheduler, and an autoscaler, have to find other nodes.
PATIENCE_S: Final = 60.0


def with_dropped_avoidance(
    plan: Plan, job: Job, observed: Observed, now: datetime.datetime
) -> Plan:
    """Return the plan of a job whose pods may have to give up avoiding nodes.

    The status records it first; the pods are replaced on that, by this leader or the next.
    """
    if not plan.status.phase.is_active or is_avoidance_dropped(plan.status):
        return plan
    waiting = [
        one.pod
        for one in observed.replicas
        if one.state is ReplicaState.PENDING and one.pod is not None and avoided_nodes(one.pod)
    ]
    left_s = _patience_left_s(waiting, now)
    if left_s is None or left_s > 0:
        return attrs.evolve(plan, requeue_after_s=shortest_wait(plan.requeue_after_s, left_s))
    names = ", ".join(sorted({name for pod in waiting for name in avoided_nodes(pod)}))
    message = (
        f"{job.resource.kind} {job.key} avoids no nodes in this attempt: its pods "
        f"fit only on nodes that they avoid: {names}"
    )
    note = EventNote("Warning", job.messages.reason("NodesNotAvoided"), message)
    return attrs.evolve(
        plan,
        status=attrs.evolve(plan.status, avoidance_dropped_at=now),
        notes=(*plan.notes, note),
        requeue_after_s=0,
    )


def _patience_left_s(pods: Iterable[Pod], now: datetime.datetime) -> float | None:
    """Return the seconds until the first pod has waited long enough; None if none waits."""
    waits = []
    for pod in pods:
        scheduled = pod.condition("PodScheduled")
        if scheduled is None or scheduled.reason != "Unschedulable" or not is_unscheduled(pod):
            continue
        since = scheduled.last_transition_time or pod.metadata.creation_timestamp or now
        waits.append(PATIENCE_S - (now - since).total_seconds())
    return min(waits, default=None)
