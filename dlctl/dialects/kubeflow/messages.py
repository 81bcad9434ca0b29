"""training-operator's messages of conditions and events; users and scripts rely on them."""

from collections.abc import Callable, Collection, Mapping

import attrs

from dlctl.api.job import Job, replica_type
from dlctl.api.status.condition_messages import ConditionMessages, backoff_limit_reached
from dlctl.api.status.job_status import Failure, JobState


def _has_no_master(job: Job) -> bool:
    return not job.replica_count("master")


@attrs.frozen
class KindMessages:
    """How training-operator's messages and reasons differ between its kinds."""

    # Returns whether messages contain the job's namespace.
    namespaced: Callable[[Job], bool] = _has_no_master
    # The beginning of failure messages, with {kind}, {key} and {name}.
    failed_subject: str = "{kind} {name} is"
    # True if restart messages contain the number of replicas.
    counts_restarts: bool = False
    # True if Running, as false, is written for a job that was not seen to run before it ended.
    emits_unseen_run: bool = False
    # Reasons by condition type, if they are not the kind and the type.
    reason_by_condition: Mapping[str, str] = attrs.field(factory=dict)
    # True if events report the exit code of each program.
    emits_exit_codes: bool = True
    # The reason of the event about a child whose name is taken; without it, no event.
    name_conflict_reason: str = ""
    # The reason of the event about a job deleted after its TTL.
    ttl_deletion_reason: str = "SuccessfulDeleteJob"
    # The reason of the event about a restart policy in a pod template.
    template_restart_policy_reason: str = "SetPodTemplateRestartPolicy"
    # The reason of the event about pods that another scheduler than the gang's places.
    other_scheduler_reason: str = "SetPodTemplateSchedulerName"
    # Types whose replicas are no longer counted once the job has ended.
    uncounted_after_finish: Collection[str] = ()


@attrs.frozen
class KubeflowMessages(ConditionMessages):
    """training-operator's messages about a job of one kind."""

    type_name: Callable[[str], str] = str.capitalize
    of_kind: KindMessages = attrs.field(factory=KindMessages)
    namespaced: bool = False
    # The types whose restart policy is ExitCode.
    exit_code_types: Collection[str] = ()
    # True if the backoff limit is 0: its message takes precedence over others about a failure.
    has_zero_backoff_limit: bool = False
    restarting_state: JobState = JobState.FAILED
    emits_replica_states: bool = False
    emits_in_place_restarts: bool = False
    emits_child_kinds: bool = True
    emits_pod_events: bool = True
    counts_running_as_succeeded: bool = True

    def reason(self, type_: str) -> str:
        return self.of_kind.reason_by_condition.get(type_) or super().reason(type_)

    def running(self) -> str:
        return f"{self._title()} is running."

    def succeeded(self) -> str:
        verb = "successfully" if self.namespaced else "is successfully"
        return f"{self._title()} {verb} completed."

    def emits_unseen_run(self, failure: Failure | None) -> bool:
        if failure is None:
            return self.of_kind.emits_unseen_run
        # Limits and exit codes fail the job before training-operator sets Running.
        fails_at_once = self.has_zero_backoff_limit or self._has_exit_code_policy(failure)
        return self.of_kind.emits_unseen_run and bool(failure.replica) and not fails_at_once

    def restarting(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        if self.of_kind.counts_restarts:
            shown = ", ".join(
                f"{count} {self.type_name(type_)}" for type_, count in counts_by_type.items()
            )
            return f"{self._short_title()} is restarting because {shown} replica(s) failed."
        shown = ", ".join(map(self.type_name, counts_by_type))
        return f"job {self.key.name} is restarting because {shown} replica(s) failed."

    def interrupted(self, counts_by_type: Mapping[str, int], names: str) -> str:
        shown = ", ".join(map(self.type_name, counts_by_type))
        return f"job {self.key.name} is restarting because pods of {shown} are gone."

    def restarting_event_message(self, counts_by_type: Mapping[str, int], causes: str) -> str:
        return self.restarting(counts_by_type, causes)

    def failed(self, failure: Failure, failed_count: int) -> str:
        if not failure.replica:
            return failure.message
        if self.has_zero_backoff_limit:
            return backoff_limit_reached(self.key.name)
        type_name = self.type_name(replica_type(failure.replica))
        if self._has_exit_code_policy(failure):
            return f'job "{self.key.name}" is failing because "{type_name}" replica(s) failed.'
        subject = self.of_kind.failed_subject.format(
            kind=self.kind, key=self.key, name=self.key.name
        )
        return f"{subject} failed because {failed_count} {type_name} replica(s) failed."

    def failed_reason(self, failure: Failure) -> str:
        if self.has_zero_backoff_limit:
            return self.job_failed_reason(failure)
        return super().failed_reason(failure)

    def failed_event_type(self, failure: Failure) -> str:
        if self.has_zero_backoff_limit:
            return "Normal"
        return "Warning" if self._has_exit_code_policy(failure) else "Normal"

    def ttl_deletion_reason(self) -> str:
        return self.of_kind.ttl_deletion_reason

    def _title(self) -> str:
        return f"{self.kind} {self.key}" if self.namespaced else self._short_title()

    def _short_title(self) -> str:
        return f"{self.kind} {self.key.name}"

    def _has_exit_code_policy(self, failure: Failure) -> bool:
        return replica_type(failure.replica) in self.exit_code_types
