"""The messages of training-operator's conditions, as its users and their scripts know them."""

from collections.abc import Callable, Mapping
from typing import Final, Self

import attrs

from dlctl.api.condition_messages import ConditionMessages
from dlctl.api.exit_codes import RetryPolicy
from dlctl.api.job import Job
from dlctl.api.status import Failure, JobState
from dlctl.frameworks.kubeflow.job import KubeflowJob

# The kinds whose jobs go, to believe the event, as pods do.
_TTL_DELETION_REASON_BY_KIND: Final = dict.fromkeys(
    ("JAXJob", "MXJob", "PaddleJob", "PyTorchJob"), "SuccessfulDeletePod"
)


@attrs.frozen
class KubeflowMessages(ConditionMessages):
    """How training-operator tells of a job of one kind."""

    type_name: Callable[[str], str] = str.capitalize
    namespaced: bool = False
    restarting_state: JobState = JobState.FAILED
    emits_replica_states: bool = False
    emits_in_place_restarts: bool = False
    emits_blocked: bool = False
    emits_child_kinds: bool = True
    reason_by_type: Mapping[str, str] = attrs.field(factory=dict)
    emits_pod_events: bool = True

    @classmethod
    def from_framework(cls, framework: KubeflowJob) -> Self:
        return cls(
            event_source=framework.controller_name(),
            type_name=framework.type_name,
            namespaced=framework.namespaced_messages(),
            uncounted_after_finish=framework.uncounted_after_finish,
            reason_by_type=framework.reason_by_condition,
            name_conflict_reason=framework.name_conflict_reason,
        )

    def reason(self, job: Job, type_: str) -> str:
        return self.reason_by_type.get(type_) or super().reason(job, type_)

    def running(self, job: Job) -> str:
        return f"{self._title(job)} is running."

    def succeeded(self, job: Job) -> str:
        verb = "successfully" if self.namespaced else "is successfully"
        return f"{self._title(job)} {verb} completed."

    def restarting(self, job: Job, counts_by_type: Mapping[str, int], causes: str) -> str:
        if job.resource.kind == "MPIJob":
            shown = ", ".join(
                f"{count} {self.type_name(type_)}" for type_, count in counts_by_type.items()
            )
            return f"{self._short_title(job)} is restarting because {shown} replica(s) failed."
        shown = ", ".join(map(self.type_name, counts_by_type))
        return f"job {job.key.name} is restarting because {shown} replica(s) failed."

    def interrupted(self, job: Job, counts_by_type: Mapping[str, int], names: str) -> str:
        shown = ", ".join(map(self.type_name, counts_by_type))
        return f"job {job.key.name} is restarting because pods of {shown} are gone."

    def restarting_event_message(
        self, job: Job, counts_by_type: Mapping[str, int], causes: str
    ) -> str:
        return self.restarting(job, counts_by_type, causes)

    def failed(self, job: Job, failure: Failure, failed_count: int) -> str:
        if not failure.replica:
            return failure.message
        type_name = self.type_name(_replica_type(failure))
        if _has_exit_code_policy(job, failure):
            return f'job "{job.key.name}" is failing because "{type_name}" replica(s) failed.'
        subject = f"{self._short_title(job)} is"
        if job.resource.kind == "TFJob":
            subject = f"TFJob {job.key} has"
        elif job.resource.kind == "MXJob":
            subject = f"mxjob {job.key.name} is"
        return f"{subject} failed because {failed_count} {type_name} replica(s) failed."

    def failed_event_type(self, job: Job, failure: Failure) -> str:
        return "Warning" if _has_exit_code_policy(job, failure) else "Normal"

    def ttl_deletion_reason(self, job: Job) -> str:
        return _TTL_DELETION_REASON_BY_KIND.get(job.resource.kind, super().ttl_deletion_reason(job))

    def _title(self, job: Job) -> str:
        return f"{job.resource.kind} {job.key}" if self.namespaced else self._short_title(job)

    def _short_title(self, job: Job) -> str:
        return f"{job.resource.kind} {job.key.name}"


def _replica_type(failure: Failure) -> str:
    return failure.replica.rpartition("-")[0]


def _has_exit_code_policy(job: Job, failure: Failure) -> bool:
    """Tell whether the restart policy of the replica that failed is ExitCode."""
    spec = job.replica_spec(_replica_type(failure))
    return spec is not None and spec.retry_policy not in (RetryPolicy.ALL, RetryPolicy.NONE)
