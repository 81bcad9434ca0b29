"""A reconciler's in-memory state of a job between reconciliations."""

import attrs
import msgspec

from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.reconcilers.children.rejected_children import RejectedChildren
from dlctl.reconcilers.children.secrets import SecretState
from dlctl.reconcilers.events.pod_events import EventDedup
from dlctl.reconcilers.job.status_conflicts import StatusConflictDetector
from dlctl.reconcilers.job.status_rejection import StatusRejection
from dlctl.reconcilers.job.status_write import StatusWrite


@attrs.define
class JobCache:
    """Saves work and writes; losing it changes no decision."""

    uid: UID
    phase: JobPhase | None = None
    # True if mpi-operator's metrics count the job.
    for_mpi_operator: bool = False
    rejected: RejectedChildren = attrs.field(factory=RejectedChildren)
    # The job's generation when the children that another operator created were labelled.
    adopted_generation: int | None = None
    # How many pods the Job of an adopted launcher had when those without the label were looked for.
    adopted_pod_count: int = 0
    # dlctl's last status, if another operator's status cannot hold all of it.
    last_status: JobStatus | None = None
    status_conflicts: StatusConflictDetector = attrs.field(factory=StatusConflictDetector)
    event_dedup: EventDedup = attrs.field(factory=EventDedup)
    secrets: SecretState = attrs.field(factory=SecretState)
    # Objects of others that are used in the place of dependents.
    preexisting: frozenset[tuple[Resource, str]] = frozenset()
    status_rejection: StatusRejection = attrs.field(factory=StatusRejection)
    # A write that the server may have made, though its response was lost.
    unconfirmed_write: StatusWrite | None = None
    status_written_s: float = float("-inf")
    # True if children were created since the last status write.
    has_created: bool = False
    # True once the first status was left until children are created.
    has_deferred_status: bool = False
    # The arrival of the earliest reconcile that left its status to a later one; None once written.
    superseded_at: float | None = None
    # How often in a row the stores did not show dlctl's own writes.
    stale_count: int = 0
    # The last valid spec, while the job has pods.
    last_good_spec: msgspec.Raw | None = None
    # The last logged error in its content.
    last_content_error: str = ""
    # The Job of its launcher, if that was seen.
    launcher_job: ObjectKey | None = None
