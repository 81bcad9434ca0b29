"""Conditions of jobs: the reasons and messages, and how a list of conditions changes. Pure."""

import datetime
from typing import Final

import attrs
import msgspec

from dlctl.clock import timestamp
from dlctl.local.job_controller.controlled_batch_jobs import (
    ControlledBatchJobCondition,
    ControlledBatchJobStatus,
)


@attrs.frozen
class Outcome:
    """How and why a job ends: its condition until its pods have ended, and the terminal one."""

    interim: str
    terminal: str
    reason: str
    message: str

    @property
    def is_success(self) -> bool:
        return self.terminal == "Complete"


COMPLETIONS_REACHED: Final = Outcome(
    "SuccessCriteriaMet",
    "Complete",
    "CompletionsReached",
    "Reached expected number of succeeded pods",
)
BACKOFF_LIMIT_EXCEEDED: Final = Outcome(
    "FailureTarget",
    "Failed",
    "BackoffLimitExceeded",
    "Job has reached the specified backoff limit",
)
DEADLINE_EXCEEDED: Final = Outcome(
    "FailureTarget",
    "Failed",
    "DeadlineExceeded",
    "Job was active longer than specified deadline",
)


def recorded_outcome(status: ControlledBatchJobStatus) -> Outcome | None:
    """Return the outcome that an earlier reconcile has recorded; it is never changed."""
    for interim, terminal in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
        condition = status.condition(interim)
        if condition is not None and condition.status == "True":
            return Outcome(interim, terminal, condition.reason or "", condition.message or "")
    return None


def with_condition(
    status: ControlledBatchJobStatus, type_: str, reason: str, message: str, now: datetime.datetime
) -> ControlledBatchJobStatus:
    """Return the status with a true condition."""
    return _with(status, _condition(type_, "True", reason, message, now))


def without_condition(
    status: ControlledBatchJobStatus, type_: str, reason: str, message: str, now: datetime.datetime
) -> ControlledBatchJobStatus:
    """Return the status with a condition that is false, unless it has never been true."""
    if status.condition(type_) is None:
        return status
    return _with(status, _condition(type_, "False", reason, message, now))


def _condition(
    type_: str, status: str, reason: str, message: str, now: datetime.datetime
) -> ControlledBatchJobCondition:
    time = timestamp(now)
    return ControlledBatchJobCondition(type_, status, time, time, reason, message)


def _with(
    status: ControlledBatchJobStatus, new: ControlledBatchJobCondition
) -> ControlledBatchJobStatus:
    old = status.condition(new.type)
    if old is None:
        changed = (*status.conditions, new)
    elif _content(old) == _content(new):
        return status
    else:
        changed = tuple(new if each is old else each for each in status.conditions)
    return msgspec.structs.replace(status, conditions=changed)


def _content(condition: ControlledBatchJobCondition) -> tuple[str, str | None, str | None]:
    return condition.status, condition.reason, condition.message
