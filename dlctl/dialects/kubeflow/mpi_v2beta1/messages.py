"""mpi-operator's messages of conditions and events; users, Kueue and scripts rely on them."""

from collections.abc import Mapping

import attrs

from dlctl.api.status import conditions
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import Failure, JobState
from dlctl.errors import truncated


@attrs.frozen
class MPIJobMessages(ConditionMessages):
    """mpi-operator's messages about one job."""

    emits_replica_states: bool = False
    emits_restarting: bool = False
    emits_idle: bool = True
    emits_in_place_restarts: bool = False
    emits_child_kinds: bool = True
    emits_pod_events: bool = True
    restarting_state: JobState = JobState.FAILED
    name_conflict_reason: str = "ErrResourceExists"
    event_source: str = "mpi-job-controller"
    counts_running_as_succeeded: bool = True
    # From the end of the launcher on, whatever the clean-up does.
    uncounted_after_finish: frozenset[str] = frozenset({"worker"})

    def invalid_reason(self) -> str:
        return "ValidationError"

    def invalid(self, problem: str) -> str:
        return truncated(f"Found validation errors: {problem}")

    def created(self) -> str:
        return f"{self.kind} {self.key} is created."

    def suspended(self) -> str:
        return f"{self.kind} suspended"

    def not_running(self) -> str:
        return f"{self.kind} {self.key} is suspended."

    def never_ran(self) -> str:
        return f"{self.kind} {self.key} is finished but Running condition was never set."

    def resumed(self) -> str:
        return f"{self.kind} resumed"

    def restarting_event_message(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        return f"{self.kind} {self.key} is restarting {causes}"

    def phase_event_message(self, type_: str) -> str:
        # The event lacks the full stop of the condition.
        messages = {
            conditions.CREATED: self.created(),
            conditions.RUNNING: self.running().removesuffix("."),
        }
        return messages.get(type_, "")

    def job_failed_reason(self, failure: Failure) -> str:
        return failure.reason or super().job_failed_reason(failure)
