"""Statuses of batch/v1 Jobs: a job ends once, in order, and its counts add up."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract import version_marks
from tests.contract.api import Api
from tests.contract.batch_jobs import created, outcome, path, rejection

T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
MET = {"SuccessCriteriaMet": "True"}
COMPLETE = MET | {"Complete": "True"}
FAILED = {"FailureTarget": "True", "Failed": "True"}
NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"


def stated(conditions: dict[str, str] | None = None, **status: Any) -> JSON:
    listed = [{"type": name, "status": value} for name, value in (conditions or {}).items()]
    return status | {"conditions": listed}


def conflict(detail: str) -> str:
    return f"status.conditions: Invalid value: {detail}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {"active": 1, "ready": 1, "startTime": T1}, id="started"),
        pytest.param(
            {"startTime": T1}, stated(COMPLETE, completionTime=T2, succeeded=1), id="complete"
        ),
        pytest.param({"startTime": T1}, stated(FAILED, failed=7), id="failed"),
        pytest.param(
            stated({"Suspended": "True"}, startTime=T1),
            stated({"Suspended": "False"}, startTime=T2),
            id="start at the resumption",
        ),
    ],
)
async def test_status_is_accepted(api: Api, before: JSON, after: JSON) -> None:
    await created(api, status=before)
    answer = await api.patch(path(api, "a/status"), {"status": after})
    assert outcome(api, answer) == ""


async def test_start_of_a_suspended_job_is_cleared(api: Api) -> None:
    await created(api, suspend=True, status={"startTime": T1})
    answer = await api.patch(path(api, "a/status"), {"status": {"startTime": None}})
    assert answer.body["status"] == {}


async def test_spec_is_not_written_with_the_status(api: Api) -> None:
    await created(api)
    body = {"status": {"active": 1}, "spec": {"parallelism": 7}}
    answer = await api.patch(path(api, "a/status"), body)
    assert answer.body["status"] == {"active": 1}
    assert answer.body["spec"]["parallelism"] == 1
    assert answer.body["metadata"]["generation"] == 1


async def test_counts_of_zero_are_left_out_unless_they_may_be_unknown(api: Api) -> None:
    await created(api)
    sent = {
        "active": 0,
        "failed": 0,
        "succeeded": 0,
        "completedIndexes": "",
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    answer = await api.patch(path(api, "a/status"), {"status": sent})
    assert answer.body["status"] == {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}


@pytest.mark.parametrize(
    ("before", "after", "causes"),
    [
        pytest.param(
            {},
            {"active": -1, "ready": -1, "terminating": -1},
            [f"status.{name}: {NEGATIVE}" for name in ("active", "ready", "terminating")],
            id="negative",
        ),
        pytest.param(
            {},
            {"ready": 1},
            ["status.ready: Invalid value: 1: cannot set more ready pods than active"],
            id="more ready than active",
        ),
        pytest.param(
            {},
            stated({"Complete": "True"}),
            [
                conflict(
                    "cannot set Complete=True condition without the SuccessCriteriaMet=true "
                    "condition"
                ),
                (
                    "status.completionTime: Required value: completionTime is required for "
                    "Complete jobs"
                ),
                "status.startTime: Required value: startTime is required for finished job",
            ],
            id="complete at once",
        ),
        pytest.param(
            {"startTime": T2},
            stated(COMPLETE, completionTime=T1),
            [
                (
                    f'status.completionTime: Invalid value: "{T1}": must be equal to or after '
                    "`startTime`"
                )
            ],
            id="complete before the start",
        ),
        pytest.param(
            {"startTime": T1},
            stated({"Failed": "True"}),
            [conflict("cannot set Failed=True condition without the FailureTarget=true condition")],
            id="failed at once",
        ),
        pytest.param(
            {"startTime": T1},
            stated(COMPLETE | FAILED, completionTime=T2),
            [
                conflict("cannot set Complete=True and Failed=true conditions"),
                conflict("cannot set Complete=True and FailureTarget=true conditions"),
                conflict("cannot set SuccessCriteriaMet=True and Failed=true conditions"),
                conflict("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
            ],
            id="complete and failed",
        ),
        pytest.param(
            {"startTime": T1},
            stated(FAILED, active=1, terminating=1, uncountedTerminatedPods={"failed": ["a"]}),
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
                (
                    "status.uncountedTerminatedPods: Invalid value: OBJECT: must be empty for "
                    "finished job"
                ),
            ],
            id="failed with pods",
        ),
        pytest.param(
            stated(FAILED, startTime=T1),
            stated(),
            [
                conflict("cannot disable the terminal Failed=True condition"),
                conflict("cannot disable the terminal FailureTarget=True condition"),
            ],
            id="no longer failed",
        ),
        pytest.param(
            stated(MET, startTime=T1),
            stated(),
            [conflict("cannot disable the SuccessCriteriaMet=True condition")],
            id="no longer successful",
        ),
        pytest.param(
            {"failed": 2, "succeeded": 2},
            {"failed": 1, "succeeded": 1},
            [
                "status.failed: Invalid value: 1: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
            ],
            id="fewer",
        ),
        pytest.param(
            {"startTime": T1},
            {"startTime": T2},
            [
                (
                    f'status.startTime: Invalid value: "{T2}": field is immutable for unsuspended '
                    "job once set"
                )
            ],
            id="another start",
            marks=version_marks.ANOTHER_START,
        ),
        pytest.param(
            {"startTime": T1},
            {"completionTime": T2},
            [
                (
                    f'status.completionTime: Invalid value: "{T2}": cannot set completionTime when '
                    "there is no Complete=True condition"
                )
            ],
            id="completion time of a job that runs",
        ),
        pytest.param(
            stated(COMPLETE, startTime=T1, completionTime=T1),
            {"completionTime": T2},
            [f'status.completionTime: Invalid value: "{T2}": field is immutable'],
            id="another completion time",
        ),
        pytest.param(
            {},
            {"uncountedTerminatedPods": {"failed": ["a", ""], "succeeded": ["a"]}},
            [
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[1]: Invalid value: "": must not be empty',
            ],
            id="pods counted twice",
        ),
    ],
)
async def test_status_is_rejected(api: Api, before: JSON, after: JSON, causes: list[str]) -> None:
    await created(api, status=before)
    answer = await api.patch(path(api, "a/status"), {"status": after})
    assert outcome(api, answer) == rejection(*causes)
