"""The fields of batch/v1 Jobs that the controller reads: projections of those of launchers."""

import datetime
from typing import Final

import msgspec

from dlctl.api.meta import (
    MANAGED_BY,
    MANAGED_BY_LABEL,
    Object,
    Projection,
    check_bytes,
    check_counts,
)
from dlctl.api.objects.kept_metadata import check_metadata

# Of its spec and status in memory.
_MAX_BYTES: Final = 32 << 10


class BatchJobCondition(Projection, frozen=True, gc=False):
    """A condition of a Job: Complete, Failed, Suspended and others."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class BatchJobStatus(Projection, frozen=True, gc=False):
    """The status of a Job, as its controller reports it."""

    start_time: datetime.datetime | None = None
    completion_time: datetime.datetime | None = None
    # Pods that are pending or running, and of these the ready ones.
    active: int | None = None
    ready: int | None = None
    failed: int | None = None
    conditions: tuple[BatchJobCondition, ...] | None = None

    def __post_init__(self) -> None:
        check_counts(conditions=self.conditions)


class TemplateMetadata(Projection, frozen=True, gc=False):
    """The labels of a Job's future pods."""

    labels: dict[str, str] | None = None

    def __post_init__(self) -> None:
        check_counts(labels=self.labels)


class TemplateSpec(Projection, frozen=True, gc=False):
    """The node selector of a Job's future pods."""

    node_selector: dict[str, str] | None = None

    def __post_init__(self) -> None:
        check_counts(nodeSelector=self.node_selector)


class PodTemplate(Projection, frozen=True, gc=False):
    """The part of a Job's pod template that patches of it depend on."""

    metadata: TemplateMetadata | None = None
    spec: TemplateSpec | None = None


class BatchJobSpec(Projection, frozen=True, gc=False):
    """Whether a Job is suspended, its retries, its TTL and its pod template."""

    suspend: bool | None = None
    backoff_limit: int | None = None
    ttl_seconds_after_finished: int | None = None
    template: PodTemplate | None = None


class BatchJob(Object, frozen=True, gc=False):
    """A batch/v1 Job, as far as decisions need it."""

    kept_annotations = ()

    spec: BatchJobSpec = msgspec.field(default_factory=BatchJobSpec)
    status: BatchJobStatus = msgspec.field(default_factory=BatchJobStatus)

    def __post_init__(self) -> None:
        check_metadata(self.metadata)
        check_bytes(_MAX_BYTES, spec=self.spec, status=self.status)

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.suspend)

    @property
    def is_complete(self) -> bool:
        return self._true("Complete") is not None

    @property
    def failed_condition(self) -> BatchJobCondition | None:
        """Return the condition that says why it has failed; None if it has not."""
        return self._true("Failed")

    @property
    def is_finished(self) -> bool:
        return self.is_complete or self.failed_condition is not None

    @property
    def pod_count(self) -> int:
        """Return how many pods it has had that are active or have failed."""
        return (self.status.active or 0) + (self.status.failed or 0)

    @property
    def node_selector(self) -> dict[str, str]:
        """Return the node selector of its future pods."""
        template = self.spec.template
        return (template.spec.node_selector if template and template.spec else None) or {}

    @property
    def labels_its_pods(self) -> bool:
        """Return whether its pods have dlctl's label, without which no store shows them."""
        template = self.spec.template
        labels = (template.metadata.labels if template and template.metadata else None) or {}
        return labels.get(MANAGED_BY_LABEL) == MANAGED_BY

    def _true(self, type_: str) -> BatchJobCondition | None:
        conditions = self.status.conditions or ()
        return next((c for c in conditions if c.type == type_ and c.status == "True"), None)
