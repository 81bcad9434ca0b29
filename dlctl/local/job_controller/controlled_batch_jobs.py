"""batch/v1 Jobs and their statuses, as their controller reads them and writes statuses."""

import datetime
from typing import Any

import msgspec

from dlctl.api.meta import Object, Projection
from dlctl.clock import timestamp

CONTROLLER_NAME = "kubernetes.io/job-controller"


class ControlledBatchJobSpec(Projection, frozen=True, gc=False):
    """The spec of a Job; without ``completions``, one success is enough."""

    template: dict[str, Any]
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    pod_replacement_policy: str = "TerminatingOrFailed"
    managed_by: str | None = None


class ControlledBatchJobCondition(Projection, frozen=True, gc=False):
    """One condition; times are kept as they were written."""

    type: str
    status: str
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str | None = None
    message: str | None = None


class UncountedPods(Projection, frozen=True, gc=False):
    """UIDs of pods that have ended, but are in no count until their finalizer is gone."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class ControlledBatchJobStatus(Projection, frozen=True, gc=False):
    """The observed state of a Job."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    terminating: int | None = None
    start_time: datetime.datetime | None = None
    completion_time: str | None = None
    conditions: tuple[ControlledBatchJobCondition, ...] = ()
    uncounted_terminated_pods: UncountedPods | None = None

    def condition(self, type_: str) -> ControlledBatchJobCondition | None:
        return next((each for each in self.conditions if each.type == type_), None)

    def is_true(self, type_: str) -> bool:
        condition = self.condition(type_)
        return condition is not None and condition.status == "True"

    @property
    def is_finished(self) -> bool:
        return self.is_true("Complete") or self.is_true("Failed")

    def patch(self) -> dict[str, Any]:
        """Return the merge patch that sets every field; counts of zero are left out."""
        pods = self.uncounted_terminated_pods or UncountedPods()
        return {
            "active": self.active or None,
            "succeeded": self.succeeded or None,
            "failed": self.failed or None,
            "ready": self.ready,
            "terminating": self.terminating,
            "startTime": timestamp(self.start_time) if self.start_time else None,
            "completionTime": self.completion_time,
            "conditions": [msgspec.to_builtins(each) for each in self.conditions] or None,
            "uncountedTerminatedPods": {
                "succeeded": list(pods.succeeded) or None,
                "failed": list(pods.failed) or None,
            },
        }


class ControlledBatchJob(Object, frozen=True, gc=False, kw_only=True):
    """A batch/v1 Job, as far as its controller needs it."""

    spec: ControlledBatchJobSpec
    status: ControlledBatchJobStatus = ControlledBatchJobStatus()

    @property
    def is_ours(self) -> bool:
        """Return whether no other controller manages the job."""
        return self.spec.managed_by in (None, CONTROLLER_NAME)

    @property
    def replaces_only_failed(self) -> bool:
        """Return whether a terminating pod is neither failed nor replaced until it has ended."""
        return self.spec.pod_replacement_policy == "Failed"
