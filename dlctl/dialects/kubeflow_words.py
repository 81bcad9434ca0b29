"""The messages of training-operator's conditions, as its users and their scripts know them."""

from collections.abc import Callable, Mapping
from typing import Final, Self

import attrs

from dlctl.api.exitcodes import RetryRule
from dlctl.api.job import Job
from dlctl.api.reporting import Reporting
from dlctl.api.status import Failure, JobState
from dlctl.frameworks.kubeflow.job import KubeflowJob

# The kinds whose jobs go, to believe the event, as pods do.
_DELETED: Final = dict.fromkeys(
    ("JAXJob", "MXJob", "PaddleJob", "PyTorchJob"), "SuccessfulDeletePod"
)


@attrs.frozen
class KubeflowReporting(Reporting):
    """How training-operator tells of a job of one kind."""

    spelling: Callable[[str], str] = str.capitalize
    with_namespace: bool = False
    lost: JobState = JobState.FAILED
    tells_states: bool = False
    states_restarts_in_place: bool = False
    states_blocked: bool = False
    names_children: bool = True
    reasons: Mapping[str, str] = attrs.field(factory=dict)
    tells_pods: bool = True

    @classmethod
    def of(cls, framework: KubeflowJob) -> Self:
        return cls(
            event_source=framework.controller_name(),
            spelling=framework.spelling,
            with_namespace=framework.told_with_namespace(),
            uncounted_at_end=framework.uncounted_at_end,
            reasons=framework.reasons,
            taken_reason=framework.taken_reason,
        )

    def reason(self, job: Job, type_: str) -> str:
        return self.reasons.get(type_) or super().reason(job, type_)

    def running(self, job: Job) -> str:
        return f"{self._title(job)} is running."

    def succeeded(self, job: Job) -> str:
        verb = "successfully" if self.with_namespace else "is successfully"
        return f"{self._title(job)} {verb} completed."

    def restarting(self, job: Job, types: Mapping[str, int], causes: str) -> str:
        if job.resource.kind == "MPIJob":
            shown = ", ".join(f"{count} {self.spelling(type_)}" for type_, count in types.items())
            return f"{self._short(job)} is restarting because {shown} replica(s) failed."
        shown = ", ".join(map(self.spelling, types))
        return f"job {job.key.name} is restarting because {shown} replica(s) failed."

    def interrupted(self, job: Job, types: Mapping[str, int], names: str) -> str:
        shown = ", ".join(map(self.spelling, types))
        return f"job {job.key.name} is restarting because pods of {shown} are gone."

    def restarting_event(self, job: Job, types: Mapping[str, int], causes: str) -> str:
        return self.restarting(job, types, causes)

    def failed(self, job: Job, failure: Failure, failed: int) -> str:
        if not failure.replica:
            return failure.message
        title = self.spelling(_type_of(failure))
        if _by_exit_code(job, failure):
            return f'job "{job.key.name}" is failing because "{title}" replica(s) failed.'
        who = f"{self._short(job)} is"
        if job.resource.kind == "TFJob":
            who = f"TFJob {job.key} has"
        elif job.resource.kind == "MXJob":
            who = f"mxjob {job.key.name} is"
        return f"{who} failed because {failed} {title} replica(s) failed."

    def failed_event_type(self, job: Job, failure: Failure) -> str:
        return "Warning" if _by_exit_code(job, failure) else "Normal"

    def deleted_reason(self, job: Job) -> str:
        return _DELETED.get(job.resource.kind, super().deleted_reason(job))

    def _title(self, job: Job) -> str:
        return f"{job.resource.kind} {job.key}" if self.with_namespace else self._short(job)

    def _short(self, job: Job) -> str:
        return f"{job.resource.kind} {job.key.name}"


def _type_of(failure: Failure) -> str:
    return failure.replica.rpartition("-")[0]


def _by_exit_code(job: Job, failure: Failure) -> bool:
    """Tell whether the restart policy of the replica that failed is ExitCode."""
    spec = job.spec_of(_type_of(failure))
    return spec is not None and spec.retries not in (RetryRule.ALL, RetryRule.NONE)
