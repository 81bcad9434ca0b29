"""The messages of training-operator's conditions, as its users and their scripts know them."""

from collections.abc import Callable, Collection, Mapping
from typing import Self

import attrs

from dlctl.api.job import Job
from dlctl.api.reporting import Reporting
from dlctl.api.status import Failure, JobState
from dlctl.frameworks.kubeflow.job import KubeflowJob


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

    @classmethod
    def of(cls, framework: KubeflowJob) -> Self:
        return cls(
            spelling=framework.spelling,
            with_namespace=framework.told_with_namespace(),
            uncounted_at_end=framework.uncounted_at_end,
            reasons=framework.reasons,
        )

    def reason(self, job: Job, type_: str) -> str:
        return self.reasons.get(type_) or super().reason(job, type_)

    def running(self, job: Job) -> str:
        return f"{self._title(job)} is running."

    def succeeded(self, job: Job) -> str:
        verb = "successfully" if self.with_namespace else "is successfully"
        return f"{self._title(job)} {verb} completed."

    def restarting(self, job: Job, types: Collection[str], causes: str) -> str:
        shown = ", ".join(map(self.spelling, types))
        return f"job {job.key.name} is restarting because {shown} replica(s) failed."

    def failed(self, job: Job, failure: Failure) -> str:
        if not failure.replica:
            return failure.message
        type_ = failure.replica.rpartition("-")[0]
        return (
            f'job "{job.key.name}" is failing because "{self.spelling(type_)}" '
            f"replica(s) failed: pod {failure.pod}: {failure.message}"
        )

    def _title(self, job: Job) -> str:
        name = str(job.key) if self.with_namespace else job.key.name
        return f"{job.resource.kind} {name}"
