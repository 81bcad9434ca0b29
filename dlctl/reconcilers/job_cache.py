"""What a reconciler remembers of a job between two reconciliations: of no consequence if lost."""

import attrs
import msgspec

from dlctl.api.meta import UID
from dlctl.api.status import JobPhase, JobStatus
from dlctl.reconcilers.children.secrets import SecretState
from dlctl.reconcilers.pod_events import EventDedup
from dlctl.reconcilers.rejected_children import RejectedChildren
from dlctl.reconcilers.status_conflicts import StatusConflictDetector


@attrs.define
class JobCache:
    """Saves work and writes; changes no decision."""

    uid: UID
    phase: JobPhase | None = None
    rejected: RejectedChildren = attrs.field(factory=RejectedChildren)
    # Whether the children that another operator has created carry our label.
    adopted: bool = False
    # Our last status, if it holds what another operator's status has no room for.
    last_status: JobStatus | None = None
    status_conflicts: StatusConflictDetector = attrs.field(factory=StatusConflictDetector)
    event_dedup: EventDedup = attrs.field(factory=EventDedup)
    secrets: SecretState = attrs.field(factory=SecretState)
    status_written_s: float = float("-inf")
    # The last spec that could be read, while there are pods to look after.
    last_good_spec: msgspec.Raw | None = None
    # The last fault in its content that was logged.
    last_fault: str = ""
