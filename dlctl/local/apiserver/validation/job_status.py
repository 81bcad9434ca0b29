"""Validation of Job statuses: a job ends once, in order, and its counts add up.

Most rules hold only for what a write changes: a status may be odd for other reasons.
"""

from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.conditions import is_condition_true

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")


def job_status_errors(old: JSON, new: JSON) -> list[FieldError]:
    before, after = old.get("status", {}), new.get("status", {})
    return [
        *_counts(after),
        *_uncounted(after),
        *_times(before, after, new["spec"]),
        *_finished(before, after, new["spec"]),
        *_conditions(before, after),
        *_changes(before, after, new["spec"]),
    ]


def _conflict(detail: str) -> FieldError:
    return FieldError("status.conditions", f"Invalid value: {detail}")


def _counts(after: JSON) -> Iterator[FieldError]:
    for name in _COUNTS:
        if after.get(name, 0) < 0:
            detail = "must be greater than or equal to 0"
            yield FieldError.invalid(f"status.{name}", after[name], detail)


def _uncounted(after: JSON) -> Iterator[FieldError]:
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(after.get("uncountedTerminatedPods", {}).get(field, ())):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                yield FieldError.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield FieldError.duplicate(path, uid)
            seen.add(uid)


def _times(before: JSON, after: JSON, spec: JSON) -> Iterator[FieldError]:
    ended, started = after.get("completionTime"), after.get("startTime")
    complete = is_condition_true(after, "Complete")
    end_changed = ended != before.get("completionTime")
    if end_changed or complete != is_condition_true(before, "Complete"):
        if ended and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield FieldError.invalid("status.completionTime", ended, detail)
        if complete and not ended:
            detail = "completionTime is required for Complete jobs"
            yield FieldError.required("status.completionTime", detail)
    if (end_changed or started != before.get("startTime")) and started and ended:
        if ended < started:
            detail = "must be equal to or after `startTime`"
            yield FieldError.invalid("status.completionTime", ended, detail)
    if ended and before.get("completionTime") not in (None, ended):
        yield FieldError.invalid("status.completionTime", ended, "field is immutable")
    if before.get("startTime") not in (None, started) and not spec["suspend"]:
        if not _is_resuming(before, after):
            detail = "field is immutable for unsuspended job once set"
            yield FieldError.invalid("status.startTime", started, detail)


def _is_resuming(before: JSON, after: JSON) -> bool:
    resumed = {"type": "Suspended", "status": "False"}.items()
    return is_condition_true(before, "Suspended") and any(
        resumed <= condition.items() for condition in after.get("conditions", ())
    )


def _is_finished(status: JSON) -> bool:
    return is_condition_true(status, "Complete") or is_condition_true(status, "Failed")


def _finished(before: JSON, after: JSON, spec: JSON) -> Iterator[FieldError]:
    """Yield errors for what a job that has ended still has, or lacks."""

    def changed(name: str) -> bool:
        ends = _is_finished(before) != _is_finished(after)
        return ends or before.get(name) != after.get(name)

    if _is_finished(after):
        if changed("active") and after.get("active", 0) > 0:
            detail = "active>0 is invalid for finished job"
            yield FieldError.invalid("status.active", after["active"], detail)
        never_started = spec["suspend"] and spec.get("completions") == 0
        if changed("startTime") and "startTime" not in after and not never_started:
            detail = "startTime is required for finished job"
            yield FieldError.required("status.startTime", detail)
        uncounted = after.get("uncountedTerminatedPods", {})
        if changed("uncountedTerminatedPods") and any(uncounted.values()):
            path = "status.uncountedTerminatedPods"
            yield FieldError.invalid(path, uncounted, "must be empty for finished job")
        if changed("terminating") and after.get("terminating", 0) > 0:
            detail = "terminating>0 is invalid for finished job"
            yield FieldError.invalid("status.terminating", after["terminating"], detail)
    counts_changed = any(before.get(name) != after.get(name) for name in ("ready", "active"))
    if counts_changed and after.get("ready", 0) > after.get("active", 0):
        detail = "cannot set more ready pods than active"
        yield FieldError.invalid("status.ready", after["ready"], detail)


def _conditions(before: JSON, after: JSON) -> Iterator[FieldError]:
    names = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    was = {name: is_condition_true(before, name) for name in names}
    now = {name: is_condition_true(after, name) for name in names}
    changed = {name for name in names if was[name] != now[name]}
    if now["Complete"] and now["Failed"] and changed & {"Complete", "Failed"}:
        yield _conflict("cannot set Complete=True and Failed=true conditions")
    if now["Complete"] and now["FailureTarget"] and changed & {"Complete", "FailureTarget"}:
        yield _conflict("cannot set Complete=True and FailureTarget=true conditions")
    if "Failed" in changed and now["Failed"] and not now["FailureTarget"]:
        yield _conflict("cannot set Failed=True condition without the FailureTarget=true condition")
    if changed & {"Complete", "SuccessCriteriaMet"}:
        if now["Complete"] and not now["SuccessCriteriaMet"]:
            yield _conflict(
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
            )
    for other in ("Failed", "FailureTarget"):
        if now["SuccessCriteriaMet"] and now[other]:
            shown = f"{other}=true"
            yield _conflict(f"cannot set SuccessCriteriaMet=True and {shown} conditions")


def _changes(before: JSON, after: JSON, spec: JSON) -> Iterator[FieldError]:
    for name in _TERMINAL:
        if is_condition_true(before, name) and not is_condition_true(after, name):
            yield _conflict(f"cannot disable the terminal {name}=True condition")
    for name in ("failed", "succeeded"):
        if after.get(name, 0) < before.get(name, 0):
            detail = f"cannot decrease the {name} counter"
            yield FieldError.invalid(f"status.{name}", after.get(name, 0), detail)
    met = is_condition_true(after, "SuccessCriteriaMet")
    if is_condition_true(before, "SuccessCriteriaMet") and not met:
        yield _conflict("cannot disable the SuccessCriteriaMet=True condition")
    if met and is_condition_true(before, "Complete"):
        if not is_condition_true(before, "SuccessCriteriaMet"):
            yield _conflict(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
            )
    if after.get("completedIndexes") and after["completedIndexes"] != before.get(
        "completedIndexes"
    ):
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield FieldError.invalid("status.completedIndexes", after["completedIndexes"], detail)
    if "failedIndexes" in after and after["failedIndexes"] != before.get("failedIndexes"):
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield FieldError.invalid("status.failedIndexes", after["failedIndexes"], detail)
