"""The status on the wire: mx-operator's spelling, read back as it was written.

What was not written by dlctl is read as far as it makes sense, and never an error.
"""

import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.dialects.replica_lists import list_status
from tests.builders import NOW
from tests.dialects.statuses import STATUSES, TEXT

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "phase", "state", "reason", "replicaStatuses", "conditions", "observedGeneration", "startTime",
    "completionTime", "restarts", "failure", "scaledDownIndexes",
]  # fmt: skip


def raw(wire: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(wire))


@settings(max_examples=30)
@given(status=STATUSES, type_field=st.sampled_from(["mx_replica_type", "replicaType"]))
def test_what_is_written_is_read_back(status: JobStatus, type_field: str) -> None:
    wire = list_status.write(status, type_field)
    again = list_status.read(raw(wire), type_field)
    assert again == status
    assert list_status.write(again, type_field) == wire


def test_old_fields_are_written_as_by_mx_operator() -> None:
    running = ReplicaStatus("scheduler", JobState.RUNNING, {JobState.RUNNING: 1})
    status = JobStatus(JobPhase.RUNNING, JobState.RUNNING, replica_statuses=(running,))
    assert msgspec.to_builtins(list_status.write(status, "mx_replica_type")) == {
        "phase": "Running",
        "state": "Running",
        "reason": "",
        "replicaStatuses": [
            {"mx_replica_type": "SCHEDULER", "state": "Running", "ReplicasStates": {"Running": 1}}
        ],
    }


def test_kinds_without_field_prefix_write_replica_type() -> None:
    status = JobStatus(replica_statuses=(ReplicaStatus("worker", JobState.UNKNOWN, {}),))
    (written,) = list_status.write(status, "replicaType")["replicaStatuses"]
    assert written["replicaType"] == "WORKER"


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    time = NOW.replace(microsecond=123).astimezone(zone)
    assert list_status.write(JobStatus(start_time=time), "mx_replica_type")["startTime"] == (
        "2026-01-01T12:00:00Z"
    )


def test_time_without_a_zone_is_read_as_utc() -> None:
    status = list_status.read(raw({"startTime": "2026-01-01T12:00:00"}), "mx_replica_type")
    assert status.start_time == NOW


def test_status_of_the_old_operator_is_read() -> None:
    old = {
        "phase": "Creating",
        "reason": "",
        "state": "Running",
        "replicaStatuses": [
            {
                "mx_replica_type": "WORKER",
                "state": "Running",
                "ReplicasStates": {"Running": 1, "Dreaming": 2},
            },
            None,
        ],
    }
    assert list_status.read(raw(old), "mx_replica_type") == JobStatus(
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        replica_statuses=(ReplicaStatus("worker", JobState.RUNNING, {JobState.RUNNING: 1}),),
    )


@pytest.mark.parametrize("wire", [None, {}, [], "Running", 3, {"replicaStatuses": None}])
def test_empty_status_is_that_of_a_new_job(wire: Any) -> None:
    assert list_status.read(raw(wire), "mx_replica_type") == JobStatus()


@settings(max_examples=30)
@given(wire=st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES))
def test_malformed_status_is_read_and_can_be_written(wire: dict[str, Any]) -> None:
    list_status.write(list_status.read(raw(wire), "mx_replica_type"), "mx_replica_type")


@settings(max_examples=30)
@given(
    inner=st.dictionaries(
        st.sampled_from(["finishedAt", "exitCode", "type", "attempts"]), JSON_VALUES
    )
)
def test_malformed_part_of_a_status_is_read_and_can_be_written(inner: dict[str, Any]) -> None:
    wire = {
        "restarts": {"worker-0": inner},
        "failure": inner,
        "conditions": [inner],
        "replicaStatuses": [inner, {"ReplicasStates": inner}],
    }
    list_status.write(list_status.read(raw(wire), "mx_replica_type"), "mx_replica_type")
