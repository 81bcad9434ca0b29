"""mpi-operator's messages of conditions and events; users, Kueue and scripts rely on them."""

import attrs

from dlctl.api.condition_messages import ConditionMessages
from dlctl.api.status import Failure, JobState


@attrs.frozen
class MPIJobMessages(ConditionMessages):
    """mpi-operator's messages about one job."""

    emits_replica_states: bool = False
    emits_in_place_restarts: bool = False
    emits_blocked: bool = False
    emits_child_kinds: bool = True
    emits_pod_events: bool = True
    restarting_state: JobState = JobState.FAILED
    name_conflict_reason: str = "ErrResourceExists"
    event_source: str = "mpi-job-controller"
    uncounted_after_finish: frozenset[str] = frozenset({"worker"})

    def failed_reason(self, failure: Failure) -> str:
        return failure.reason or super().failed_reason(failure)
