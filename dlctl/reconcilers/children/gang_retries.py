"""Makes the coscheduling plugin retry a waiting gang, by patching its PodGroup.

Pure. After a failed attempt the plugin retries only after five minutes, even when a node joins or
another job ends; any update of the PodGroup triggers an immediate retry.
"""

import datetime
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.job import Job
from dlctl.api.objects.dependents import GANG_RETRIED_AT, DependentObject
from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS, POD_GROUP_LABEL
from dlctl.reconcilers.children.placement import is_unscheduled
from dlctl.reconcilers.observe import Observed

# Stored on the PodGroup, so that a restart of the controller causes no burst of writes.
RETRY_INTERVAL_S: Final = 30.0


@attrs.frozen
class GangRetry:
    """The PodGroup to patch now, if due, and the seconds until the next retry."""

    group: DependentObject | None = None
    # A merge patch that only sets the time of the retry.
    patch: Mapping[str, Any] = attrs.field(factory=dict)
    requeue_after_s: float | None = None


def gang_retry(job: Job, observed: Observed, now: datetime.datetime) -> GangRetry:
    """Return the retry of a gang that waits to be scheduled: now, or when to look again."""
    groups = observed.children.dependents.get(COSCHEDULING_POD_GROUPS, ())
    group = next((g for g in groups if g.metadata.name == job.key.name), None)
    created = list(_waiting_since(job, observed))
    if group is None or group.metadata.is_terminating or not created:
        return GangRetry()
    retried = _retried_at(group)
    # A time in the future, from another clock, is ignored.
    last = max(min(created), retried) if retried and retried <= now else min(created)
    wait_s = RETRY_INTERVAL_S - (now - last).total_seconds()
    if wait_s > 0:
        return GangRetry(requeue_after_s=wait_s)
    annotations = {GANG_RETRIED_AT: now.isoformat()}
    patch = {"metadata": {"name": group.metadata.name, "annotations": annotations}}
    return GangRetry(group, patch, RETRY_INTERVAL_S)


def _waiting_since(job: Job, observed: Observed) -> Iterator[datetime.datetime]:
    """Yield the creation times of the gang's unscheduled pods."""
    for pod in observed.own_pods:
        if (
            pod.metadata.label(POD_GROUP_LABEL) == job.key.name
            and is_unscheduled(pod)
            and not pod.scheduling_gates
        ):
            created = pod.metadata.creation_timestamp
            if created is not None:
                yield created


def _retried_at(group: DependentObject) -> datetime.datetime | None:
    written = group.metadata.annotation(GANG_RETRIED_AT)
    try:
        time = datetime.datetime.fromisoformat(written)
    except ValueError:
        return None
    return time if time.tzinfo else None
