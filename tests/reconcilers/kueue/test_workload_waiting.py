"""What Kueue's Workload of a job waits for."""

from typing import Any

import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.objects.workloads import Workload
from dlctl.api.status.waiting import Waiting
from dlctl.errors import MAX_MESSAGE_CHARS
from dlctl.reconcilers.kueue.workload_waiting import shown_position, workload_waiting

NO_ROOM = (
    "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in "
    "flavor a100, 4 more needed"
)


def condition(type_: str, *, status: bool, reason: str = "", message: str = "") -> JSON:
    value = "True" if status else "False"
    return {"type": type_, "status": value, "reason": reason, "message": message}


def workload(*conditions: JSON, spec: JSON | None = None, **status: Any) -> Workload:
    wire = {
        "metadata": {"name": "job-linear-1a2b3"},
        "spec": spec or {"queueName": "team-a"},
        "status": {"conditions": list(conditions), **status},
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=Workload)


def waiting(*conditions: JSON, spec: JSON | None = None, **status: Any) -> Waiting | None:
    return workload_waiting(workload(*conditions, spec=spec, **status))


UNRESERVED = condition("QuotaReserved", status=False, reason="Pending", message=NO_ROOM)
RESERVED = condition("QuotaReserved", status=True, reason="QuotaReserved")


@pytest.mark.parametrize("reason", ["Pending", "WaitingForQuota", ""])
def test_job_without_quota_names_the_queue_and_what_lacks(reason: str) -> None:
    found = waiting({**UNRESERVED, "reason": reason})
    message = f"Kueue has not admitted the job from queue team-a: {NO_ROOM}"
    assert found == Waiting("WaitingForQuota", message)


@pytest.mark.parametrize(
    "reason",
    ["NoMatchingFlavor", "ExceedsMaxQuota", "TopologyPlacementFailed", "Misconfigured"],
)
def test_reason_of_kueue_is_kept(reason: str) -> None:
    found = waiting({**UNRESERVED, "reason": reason})
    assert found is not None
    assert found.reason == reason


def test_new_workload_waits_for_quota() -> None:
    message = "Kueue has not admitted the job from queue team-a"
    assert waiting() == Waiting("WaitingForQuota", message)


def test_position_follows_the_queue() -> None:
    found = workload_waiting(workload(UNRESERVED), position="3")
    assert found == Waiting(
        "WaitingForQuota",
        "Kueue has not admitted the job from queue team-a (position 3 of the cluster queue): "
        f"{NO_ROOM}",
    )


@pytest.mark.parametrize(
    ("positions", "shown"),
    [
        ((1,), "1"),
        ((10,), "10"),
        ((11, 20), "11 to 20"),
        ((21, 50), "21 to 50"),
        ((51, 100), "51 to 100"),
        ((101, 1000), "above 100"),
    ],
)
def test_positions_far_behind_are_shown_in_bands(positions: tuple[int, ...], shown: str) -> None:
    assert {shown_position(position) for position in positions} == {shown}


@pytest.mark.parametrize(
    ("one", "waits"),
    [
        pytest.param(workload(), True, id="new"),
        pytest.param(workload(UNRESERVED), True, id="without quota"),
        pytest.param(workload(RESERVED), False, id="with quota"),
        pytest.param(workload(condition("Finished", status=True)), False, id="finished"),
        pytest.param(workload(UNRESERVED, spec={"active": False}), False, id="deactivated"),
    ],
)
def test_only_a_workload_that_waits_for_quota_has_a_position(one: Workload, waits: bool) -> None:
    found = workload_waiting(one, position="3")
    assert ("position 3" in found.message if found else False) is waits
    assert one.waits_for_quota is waits


def test_evicted_job_says_why_and_when_it_is_queued_again() -> None:
    evicted = condition(
        "Evicted", status=True, reason="PodsReadyTimeout", message="Exceeded the timeout"
    )
    found = waiting(evicted, UNRESERVED, requeueState={"requeueAt": "2026-01-01T12:00:00Z"})
    assert found is not None
    assert found.message == (
        "Kueue has evicted the job (PodsReadyTimeout: Exceeded the timeout), and Kueue has not "
        f"admitted it from queue team-a: {NO_ROOM}; it is queued again at 2026-01-01 12:00:00 UTC"
    )


def test_reserved_job_waits_for_its_admission_checks() -> None:
    checks = [
        {"name": "ready", "state": "Ready", "message": ""},
        {"name": "capacity", "state": "Pending", "message": "waiting for a ProvisioningRequest."},
    ]
    assert waiting(RESERVED, admissionChecks=checks) == Waiting(
        "AdmissionCheckPending",
        "Kueue waits for the admission check capacity (Pending: waiting for a ProvisioningRequest)",
    )


def test_deactivated_job_names_the_field_to_set() -> None:
    evicted = condition("Evicted", status=True, reason="Deactivated", message="by an admin")
    found = waiting(evicted, UNRESERVED, spec={"active": False, "queueName": "team-a"})
    assert found == Waiting(
        "WorkloadDeactivated",
        "Kueue has deactivated Workload job-linear-1a2b3 (Deactivated: by an admin): set its "
        "spec.active to true",
    )


@pytest.mark.parametrize("type_", ["Admitted", "Finished"])
def test_admitted_job_does_not_wait_for_kueue(type_: str) -> None:
    assert waiting(RESERVED, condition(type_, status=True)) is None


def test_message_is_bounded() -> None:
    found = waiting({**UNRESERVED, "message": "x" * 32_768, "reason": "y" * 5_000})
    assert found is not None
    assert len(found.message) <= MAX_MESSAGE_CHARS
    assert len(found.reason) <= MAX_MESSAGE_CHARS
