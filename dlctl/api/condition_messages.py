"""How a job's state is told: the words of conditions, and how replicas in between are counted.

The words here are dlctl's own; a dialect whose users know others has its own reporting.
"""

from collections.abc import Collection, Mapping

import attrs

from dlctl.api import conditions
from dlctl.api.meta import ObjectKey
from dlctl.api.status import Failure, JobState


@attrs.frozen
class ConditionMessages:
    """What is said of a job in messages that people and scripts read."""

    kind: str
    key: ObjectKey
    # How a replica counts whose pod has ended and that is to be run again.
    restarting_state: JobState = JobState.RUNNING
    # Whether the common state of a type's replicas is told, and which of them wait.
    emits_replica_states: bool = True
    # Whether a container that the kubelet runs again in its pod makes the job Restarting.
    emits_in_place_restarts: bool = True
    # Whether a job that cannot get on has a condition that says so, beside the events.
    emits_blocked: bool = True
    # Whether events name the kind of the child: SuccessfulCreatePod.
    emits_child_kinds: bool = False
    # Whether events tell how each pod has ended, why it does not run, and that it was deleted.
    emits_pod_events: bool = False
    # The reason of the event about a child whose name another object has; none if empty.
    name_conflict_reason: str = ""
    # Whom events name as their source.
    event_source: str = "dlctl"
    # Conditions that only say how far a job has come: they wait for something else to be written.
    progress_conditions: Collection[str] = ()
    # Types whose replicas are not counted any more when the job has ended.
    uncounted_after_finish: Collection[str] = ()

    def reason(self, type_: str) -> str:
        """Return the reason of a condition that holds."""
        return f"{self.kind}{type_}"

    def running(self) -> str:
        return f"{self.kind} {self.key} is running."

    def succeeded(self) -> str:
        return f"{self.kind} {self.key} successfully completed."

    def restarting(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        """Say that so many replicas of these types are run again; ``causes`` name them."""
        return f"restarting {causes}"

    def interrupted(self, counts_by_type: Mapping[str, int], names: str) -> str:
        """Say that a job does not run because pods of these types that ran are gone."""
        return f"waiting for the pods of {names}, which ran and are gone"

    def failed(self, failure: Failure, failed_count: int) -> str:
        """Say how the job has failed, with so many replicas of the type that is to blame."""
        if not failure.replica:
            return failure.message
        return f"{failure.replica} (pod {failure.pod}) failed: {failure.message}"

    def failed_reason(self, failure: Failure) -> str:
        """Return the reason of the condition of a job that one of its replicas has failed."""
        return self.reason(conditions.FAILED)

    def suspended_reason(self) -> str:
        return f"{self.kind}Suspended"

    def restarting_event_message(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        """Say in an event that replicas are run again."""
        return f"restarting {causes}"

    def failed_event_type(self, failure: Failure) -> str:
        """Return whether the event of a job's failure is Normal or Warning."""
        return "Warning"

    def ttl_deletion_reason(self) -> str:
        """Return the reason of the event of a job that was deleted in time."""
        return "SuccessfulDeleteJob"
