"""What et-operator's conditions say, of jobs and of the requests that scale them.

Its reasons and, but for slips of the pen, its messages: scripts look for them.
"""

import datetime
from collections.abc import Collection
from typing import Final

import attrs

from dlctl.api import conditions
from dlctl.api.conditions import Condition
from dlctl.api.elastic import SCALE_INS, SCALE_OUTS, Scaler, ScalerPhase
from dlctl.api.job import Job
from dlctl.api.reporting import Reporting
from dlctl.api.status import Failure, JobState
from dlctl.dialects.elastic.policies import SUSPENDED

WORKERS_CREATED: Final = "WorkersCreated"
WORKERS_READY: Final = "WorkersReady"
LAUNCHER_CREATED: Final = "LauncherCreated"
SCRIPT_EXECUTED: Final = "ScriptExecuted"
# Of a job and of what scales it.
SCALING: Final = ScalerPhase.SCALING.value
SCALE_SUCCEEDED: Final = ScalerPhase.SUCCEEDED.value
SCALE_FAILED: Final = ScalerPhase.FAILED.value
_OF_ITS_OWN: Final = "a change that its spec or its nodes ask for"
_DIRECTIONS: Final = {SCALE_INS.kind: "ScalingIn", SCALE_OUTS.kind: "ScalingOut"}


@attrs.frozen
class TrainingJobReporting(Reporting):
    """How et-operator tells of a job."""

    lost: JobState = JobState.FAILED
    tells_states: bool = False
    states_restarts_in_place: bool = False
    event_source: str = "trainingjob"
    progress: Collection[str] = (WORKERS_CREATED, WORKERS_READY, LAUNCHER_CREATED)

    def running(self, job: Job) -> str:
        return f"job({job.key}) is running."

    def succeeded(self, job: Job) -> str:
        return f"job({job.key}) successfully completed."

    def failed(self, job: Job, failure: Failure, failed: int) -> str:
        """Say more than et-operator, after its words: why."""
        return f"job({job.key}) has failed: {super().failed(job, failure, failed)}"

    def failed_reason(self, job: Job, failure: Failure) -> str:
        evicted = failure.reason == "Evicted"
        return "TrainingJobEvicted" if evicted else super().failed_reason(job, failure)

    def suspended_reason(self, job: Job) -> str:
        waits = job.annotations.get(SUSPENDED) == "true"
        return "WaitingResourceTimeout" if waits else super().suspended_reason(job)


def workers_created(job: Job, now: datetime.datetime) -> Condition:
    return _stated(WORKERS_CREATED, "", f"create trainingjob({job.key}) workers", now)


def workers_ready(job: Job, count: int, now: datetime.datetime) -> Condition:
    message = f"trainingjob({job.key}) all workers ({count}) are running"
    return _stated(WORKERS_READY, "", message, now)


def launcher_created(job: Job, now: datetime.datetime) -> Condition:
    return _stated(LAUNCHER_CREATED, "", f"create trainingjob({job.key}) launcher", now)


def scaling(job: Job, scaler: str, now: datetime.datetime) -> Condition:
    """Say that a job's workers are changed; ``scaler`` is the full name of what asks for it.

    It is empty where the job's own spec or nodes do.
    """
    message = f"trainingjob({job.key}) execute {scaler or _OF_ITS_OWN}"
    return _stated(SCALING, "ScalingStart", message, now)


def scale_ended(job: Job, scaler: str, now: datetime.datetime, *, ok: bool) -> Condition:
    """Say how a change of a job's workers has ended."""
    what = scaler or f"trainingjob({job.key}): {_OF_ITS_OWN}"
    return _ended(scaler.partition(":")[0], f"{what} has {_outcome(ok)}", now, ok=ok)


def scaler_created(scaler: Scaler, now: datetime.datetime) -> Condition:
    message = f"Scaling job {scaler.full_name} created, match the training job {_job(scaler)}"
    return _stated(conditions.CREATED, "", message, now)


def scaler_scaling(scaler: Scaler, now: datetime.datetime) -> Condition:
    message = f"trainingjob({_job(scaler)}) execute {scaler.full_name}"
    return _stated(SCALING, "ScalingStart", message, now)


def script_executed(scaler: Scaler, now: datetime.datetime) -> Condition:
    message = f"trainingjob({_job(scaler)}): execute script on launcher for {scaler.full_name}"
    return _stated(SCRIPT_EXECUTED, "", message, now)


def scaler_ended(
    scaler: Scaler, now: datetime.datetime, *, ok: bool, message: str = ""
) -> Condition:
    """Say how a request has ended; ``message`` tells more than that, such as why."""
    said = f"{scaler.full_name} has {_outcome(ok)}"
    return _ended(scaler.resource.kind, f"{said}: {message}" if message else said, now, ok=ok)


def _ended(kind: str, message: str, now: datetime.datetime, *, ok: bool) -> Condition:
    reason = f"{_DIRECTIONS.get(kind, 'Scaling')}{_outcome(ok)}"
    return _stated(SCALE_SUCCEEDED if ok else SCALE_FAILED, reason, message, now)


def _outcome(ok: bool) -> str:
    return "Succeeded" if ok else "Failed"


def _job(scaler: Scaler) -> str:
    return f"{scaler.key.namespace}/{scaler.job}"


def _stated(type_: str, reason: str, message: str, now: datetime.datetime) -> Condition:
    now = now.replace(microsecond=0)
    return Condition(type_, True, reason, message, since=now, updated=now)
