"""The conditions of et-operator's jobs and of the requests that scale them.

Reasons and messages are et-operator's, except for typing errors: scripts look for them.
"""

import datetime
from collections.abc import Collection, Sequence
from typing import Final

import attrs

from dlctl.api.job import LAUNCHER, Job, replica_type
from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler, ScalerPhase
from dlctl.api.status import conditions
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import Failure, JobState
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS

WORKERS_CREATED: Final = "WorkersCreated"
WORKERS_READY: Final = "WorkersReady"
LAUNCHER_CREATED: Final = "LauncherCreated"
SCRIPT_EXECUTED: Final = "ScriptExecuted"
# Condition types of jobs, and phases of scalers.
SCALING: Final = ScalerPhase.SCALING.value
SCALE_SUCCEEDED: Final = ScalerPhase.SUCCEEDED.value
SCALE_FAILED: Final = ScalerPhase.FAILED.value
_OWN_CHANGE: Final = "a change that its spec or its nodes ask for"
_REASON_BY_KIND: Final = {SCALE_INS.kind: "ScalingIn", SCALE_OUTS.kind: "ScalingOut"}


@attrs.frozen
class TrainingJobMessages(ConditionMessages):
    """et-operator's messages about a job."""

    restarting_state: JobState = JobState.FAILED
    emits_replica_states: bool = False
    emits_in_place_restarts: bool = False
    event_source: str = "trainingjob"
    progress_conditions: Collection[str] = (WORKERS_CREATED, WORKERS_READY, LAUNCHER_CREATED)
    # True if et-operator's annotation suspends the job: the scheduler has given up for now.
    waits_for_resources: bool = False

    def running(self) -> str:
        return f"job({self.key}) is running."

    def succeeded(self) -> str:
        return f"job({self.key}) successfully completed."

    def phase_event_message(self, type_: str) -> str:
        return self.running() if type_ == conditions.RUNNING else ""

    def failed(self, failure: Failure, failed_count: int) -> str:
        """Return et-operator's message, followed by the cause."""
        return f"job({self.key}) has failed: {super().failed(failure, failed_count)}"

    def failed_reason(self, failure: Failure) -> str:
        """Return the reason of the launcher's pod, if it has one, as et-operator does."""
        found = _launcher_pod_reason(failure)
        if found == "Evicted":
            return "TrainingJobEvicted"
        return found or super().failed_reason(failure)

    def failed_event_reason(self, failure: Failure) -> str:
        """Return the same, but that of an eviction as the kubelet calls it."""
        return _launcher_pod_reason(failure) or super().failed_event_reason(failure)

    def suspended(self) -> str:
        if self.waits_for_resources:
            return f"{self.kind} {self.key.name} is waiting resource timeout."
        return super().suspended()

    def suspension_sets_others(self) -> bool:
        return not self.waits_for_resources

    def suspended_reason(self) -> str:
        return "WaitingResourceTimeout" if self.waits_for_resources else super().suspended_reason()


def _launcher_pod_reason(failure: Failure) -> str:
    return failure.pod_reason if replica_type(failure.replica) == LAUNCHER else ""


def workers_created(job: Job, now: datetime.datetime) -> Condition:
    return _true_condition(WORKERS_CREATED, "", f"create trainingjob({job.key}) workers", now)


def workers_created_at(current: Sequence[Condition]) -> datetime.datetime | None:
    """Return since when a job's workers exist; None if they do not."""
    condition = conditions.find(current, WORKERS_CREATED)
    return condition.last_transition_time if condition else None


def workers_ready(job: Job, count: int, now: datetime.datetime) -> Condition:
    message = f"trainingjob({job.key}) all workers ({count}) are running"
    return _true_condition(WORKERS_READY, "", message, now)


def launcher_created(job: Job, now: datetime.datetime) -> Condition:
    return _true_condition(LAUNCHER_CREATED, "", f"create trainingjob({job.key}) launcher", now)


def scaling(job: Job, scaler: str, now: datetime.datetime) -> Condition:
    """Return the condition of a job that is being scaled; ``scaler`` is the scaler's full name.

    It is empty if the job's own spec or a node drain causes it.
    """
    message = f"trainingjob({job.key}) execute {scaler or _OWN_CHANGE}"
    return _true_condition(SCALING, "ScalingStart", message, now)


def scaling_finished(
    job: Job, scaler: str, now: datetime.datetime, failure: ScaleFailure | None = None
) -> Condition:
    """Return the condition of a job after a scale operation: the same as its scaler's."""
    return _finished(scaler or f"trainingjob({job.key}): {_OWN_CHANGE}", now, failure)


def scaler_created(scaler: Scaler, now: datetime.datetime) -> Condition:
    message = f"Scaling job {scaler.full_name} created, match the training job {_job_name(scaler)}"
    return _true_condition(conditions.CREATED, "", message, now)


def scaler_scaling(scaler: Scaler, now: datetime.datetime) -> Condition:
    message = f"trainingjob({_job_name(scaler)}) execute {scaler.full_name}"
    return _true_condition(SCALING, "ScalingStart", message, now)


def script_executed(scaler: Scaler, now: datetime.datetime) -> Condition:
    message = f"trainingjob({_job_name(scaler)}): execute script on launcher for {scaler.full_name}"
    return _true_condition(SCRIPT_EXECUTED, "", message, now)


def has_executed_script(scaler: Scaler) -> bool:
    """Return whether a scaler's script has succeeded, or without one the hosts are written."""
    return conditions.is_true(scaler.status.conditions, SCRIPT_EXECUTED)


def scaler_finished(
    scaler: Scaler, now: datetime.datetime, failure: ScaleFailure | None = None
) -> Condition:
    """Return the terminal condition of a request."""
    return _finished(scaler.full_name, now, failure)


def _finished(subject: str, now: datetime.datetime, failure: ScaleFailure | None) -> Condition:
    kind, _, _ = subject.partition(":")
    reason = f"{_REASON_BY_KIND.get(kind, 'Scaling')}{'Failed' if failure else 'Succeeded'}"
    if failure is None:
        return _true_condition(SCALE_SUCCEEDED, reason, f"{subject} has Succeeded", now)
    return _true_condition(SCALE_FAILED, reason, _failure_message(kind, subject, failure), now)


def _failure_message(kind: str, subject: str, failure: ScaleFailure) -> str:
    """Return et-operator's message about the step, followed by the cause."""
    if failure.step is FailedStep.AWAIT_WORKERS:
        summary = f"scaleout job {subject} execution timeout"
    elif failure.step is FailedStep.RUN_SCRIPT:
        summary = f"{subject} execute script failed, error"
    elif failure.step is FailedStep.SELECT_WORKERS and kind == SCALE_INS.kind:
        summary = f"{subject} get to delete workers name failed, error"
    else:
        summary = f"{subject} has Failed"
    return f"{summary}: {failure.message}" if failure.message else summary


def _job_name(scaler: Scaler) -> str:
    return f"{scaler.key.namespace}/{scaler.job}"


def _true_condition(type_: str, reason: str, message: str, now: datetime.datetime) -> Condition:
    now = now.replace(microsecond=0)
    return Condition(type_, True, reason, message, last_transition_time=now, last_update_time=now)
