"""How a job's state is reported: condition messages, event reasons and replica counts.

The defaults are dlctl's own; a dialect whose users know other messages overrides them.
"""

from collections.abc import Collection, Mapping

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.api.status import conditions
from dlctl.api.status.job_status import Failure, JobState


def backoff_limit_reached(job: str) -> str:
    """Return the message about the failure of a job by its backoff limit."""
    return f"Job {job} has failed because it has reached the specified backoff limit"


@attrs.frozen
class ConditionMessages:
    """The messages, reasons and options by which a job's state is reported."""

    kind: str
    key: ObjectKey
    # The state under which a replica counts between the end of its pod and the restart.
    restarting_state: JobState = JobState.RUNNING
    # True if messages report the common state of a type's replicas, and which of them wait.
    emits_replica_states: bool = True
    # True if a restart has a condition of its own, instead of making Running false.
    emits_restarting: bool = True
    # True if a container that the kubelet restarts in its pod makes the job Restarting.
    emits_in_place_restarts: bool = True
    # True if Running, as false, and counts of 0 are written even for a job that has never run.
    emits_idle: bool = False
    # True if reasons of events name the kind of the child: SuccessfulCreatePod.
    emits_child_kinds: bool = False
    # True if events report why single pods do not run, and their deletion.
    emits_pod_events: bool = False
    # True if events report the exit code of each program.
    emits_exit_codes: bool = False
    # The reason of the event about a child whose name is taken; without it, no event.
    name_conflict_reason: str = ""
    # The reason of the event about pods that another scheduler than the gang's places.
    other_scheduler_reason: str = "SetPodTemplateSchedulerName"
    # The source component of events.
    event_source: str = "dlctl"
    # Conditions that only report progress: they are written together with the next other change.
    progress_conditions: Collection[str] = ()
    # True if replicas that still run when the job succeeds count as succeeded.
    counts_running_as_succeeded: bool = False
    # Types whose replicas are no longer counted once the job has ended.
    uncounted_after_finish: Collection[str] = ()

    def reason(self, type_: str) -> str:
        """Return the reason of a true condition, or of an event."""
        return f"{self.kind}{type_}"

    def invalid_reason(self) -> str:
        """Return the reason of the conditions and events about an invalid job."""
        return f"{self.kind}Invalid"

    def invalid(self, problem: str) -> str:
        """Return the message about an invalid job that has never run."""
        return problem

    def invalid_status_reason(self, problem: str) -> str:
        """Return ``status.reason`` of an invalid job that has never run."""
        return problem

    def created(self) -> str:
        return f"{self.kind} {self.key.name} is created."

    def suspended(self) -> str:
        return f"{self.kind} {self.key.name} is suspended."

    def not_running(self) -> str:
        """Return the message of the Running condition of a suspended job."""
        return self.suspended()

    def never_ran(self) -> str:
        """Return the message of the Running condition of a job that ended without it."""
        return f"{self.kind} {self.key} has ended and never ran."

    def emits_unseen_run(self, failure: Failure | None) -> bool:
        """Return whether a job that ended without Running gets it, as false."""
        return False

    def resumed(self) -> str:
        return f"{self.kind} {self.key.name} is resumed."

    def phase_event_message(self, type_: str) -> str:
        """Return the message of the event when this condition becomes true; empty for no event."""
        return ""

    def running(self) -> str:
        return f"{self.kind} {self.key} is running."

    def succeeded(self) -> str:
        return f"{self.kind} {self.key} successfully completed."

    def restarting(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        """Return the message of a restart of replicas of these types; ``causes`` names them."""
        return f"restarting {causes}"

    def interrupted(self, counts_by_type: Mapping[str, int], names: str) -> str:
        """Return the message of a job that waits for pods of these types that ran and are gone."""
        return f"waiting for the pods of {names}, which ran and are gone"

    def failed(self, failure: Failure, failed_count: int) -> str:
        """Return the message of a failed job.

        ``failed_count`` is the number of failed replicas of the failed replica's type.
        """
        if not failure.replica:
            return failure.message
        return f"{failure.replica} (pod {failure.pod}) failed: {failure.message}"

    def failed_reason(self, failure: Failure) -> str:
        """Return the reason of the Failed condition for a failure of a replica."""
        return self.reason(conditions.FAILED)

    def failed_event_reason(self, failure: Failure) -> str:
        """Return the reason of the event for a failure of a replica."""
        return f"{self.kind}{conditions.FAILED}"

    def job_failed_reason(self, failure: Failure) -> str:
        """Return the reason of the condition and event for a failure of the job as a whole."""
        return f"{self.kind}{conditions.FAILED}"

    def suspension_sets_others(self) -> bool:
        """Return whether a suspended job gets Created, and Running as false."""
        return True

    def suspended_reason(self) -> str:
        return f"{self.kind}Suspended"

    def restarting_event_message(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        """Return the message of the event about a restart of replicas."""
        return f"restarting {causes}"

    def failed_event_type(self, failure: Failure) -> str:
        """Return whether the event of a job's failure is Normal or Warning."""
        return "Warning"

    def ttl_deletion_reason(self) -> str:
        """Return the reason of the event about a job that was deleted after its TTL."""
        return "SuccessfulDeleteJob"
