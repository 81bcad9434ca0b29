"""Kueue's Workloads: the fields that say why a job is not admitted, and their places in queues.

All versions have these fields.
"""

import datetime
from typing import Final, Self

from dlctl.api.interning import Interner, with_parts
from dlctl.api.meta import Object, Projection, Resource, check_bytes

WORKLOADS: Final = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
# The preferred one first.
WORKLOAD_VERSIONS: Final = ("v1beta2", "v1beta1")
# Not those of the group above: the visibility API has a server of its own.
LOCAL_QUEUES: Final = Resource("visibility.kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue")
# Of spec and status, where the message of a condition may have 32 KiB; and of the owners, which are
# all pods of a group.
_MAX_BYTES: Final = 128 << 10
VISIBILITY_VERSIONS: Final = ("v1beta2", "v1beta1")


class WorkloadCondition(Projection, frozen=True, gc=False):
    """A condition of a Workload: QuotaReserved, Admitted, Evicted and others."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class AdmissionCheckState(Projection, frozen=True, gc=False):
    """The state of a check by another controller before Kueue admits a Workload."""

    name: str = ""
    state: str | None = None
    message: str | None = None


class RequeueState(Projection, frozen=True, gc=False):
    """When an evicted Workload is queued again."""

    requeue_at: datetime.datetime | None = None


class WorkloadSpec(Projection, frozen=True, gc=False):
    """The queue of a Workload, and whether it may be admitted at all."""

    active: bool | None = None
    queue_name: str | None = None


class WorkloadStatus(Projection, frozen=True, gc=False):
    """How far the admission of a Workload is."""

    conditions: tuple[WorkloadCondition, ...] | None = None
    admission_checks: tuple[AdmissionCheckState, ...] | None = None
    requeue_state: RequeueState | None = None


class Workload(Object, frozen=True, gc=False):
    """A Workload, which Kueue creates for a job, or for a group of pods."""

    kept_annotations = ()

    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None

    def __post_init__(self) -> None:
        check_bytes(_MAX_BYTES, spec=self.spec, status=self.status)
        check_bytes(_MAX_BYTES, ownerReferences=self.metadata.owner_references)

    def for_store(self, interner: Interner) -> Self:
        """Return the Workload without labels and finalizers, which nothing here reads."""
        metadata = with_parts(self.metadata, labels=None, finalizers=None)
        return with_parts(self, metadata=metadata.for_store(interner, self.kept_annotations))

    def condition(self, type_: str) -> WorkloadCondition | None:
        conditions = (self.status.conditions if self.status else None) or ()
        return next((c for c in conditions if c.type == type_), None)

    def is_true(self, type_: str) -> bool:
        condition = self.condition(type_)
        return condition is not None and condition.status == "True"

    @property
    def waits_for_quota(self) -> bool:
        """Return whether it is in a queue: active, and without quota reserved for it."""
        inactive = self.spec is not None and self.spec.active is False
        decided = ("QuotaReserved", "Admitted", "Finished")
        return not inactive and not any(map(self.is_true, decided))


class PendingWorkload(Object, frozen=True, gc=False):
    """The place of a Workload in its queue, as the visibility API shows it."""

    # Counted from 0.
    position_in_cluster_queue: int | None = None


class PendingWorkloadsSummary(Projection, frozen=True, gc=False):
    """The pending Workloads of a LocalQueue, in the order of the queue."""

    items: tuple[PendingWorkload, ...] | None = None
