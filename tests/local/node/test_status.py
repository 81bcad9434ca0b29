"""The reported status of a pod."""

import datetime
from typing import Any

import msgspec
import pytest

from dlctl.local.node.status import (
    ContainerRecord,
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
    PodState,
    phase,
    status,
)
from tests.local.node.builders import make_pod

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(seconds=5)
WAITING = ContainerWaiting("ContainerCreating")


def ended(code: int) -> ContainerTerminated:
    return ContainerTerminated(code, "Error" if code else "Completed", NOW, NOW)


def make_record(state: Any, **fields: Any) -> ContainerRecord:
    return ContainerRecord("main", "any", state, **fields)


def make_facts(*records: ContainerRecord, inits: list[ContainerRecord] | None = None) -> PodState:
    return PodState(
        NOW, "10.244.0.1", "10.244.0.2", init_containers=inits or [], containers=list(records)
    )


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([make_record(WAITING)], "Pending", id="not started"),
        pytest.param([make_record(ContainerRunning(NOW))], "Running", id="running"),
        pytest.param([make_record(WAITING, last=ended(1))], "Running", id="between two starts"),
        pytest.param([make_record(ended(0), done=True)], "Succeeded", id="good end"),
        pytest.param([make_record(ended(1), done=True)], "Failed", id="bad end"),
        pytest.param(
            [make_record(ended(1), done=True), make_record(ContainerRunning(NOW))],
            "Running",
            id="one left",
        ),
    ],
)
def test_phase_follows_from_the_containers(records: list[ContainerRecord], expected: str) -> None:
    facts = make_facts(*records)
    assert phase(facts) == ("Running" if all(r.done for r in records) else expected)
    facts.finished = True
    assert phase(facts) == expected


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (make_record(ContainerRunning(NOW)), "Pending"),
        (make_record(ended(1), done=True), "Failed"),
        (make_record(ended(1)), "Pending"),
    ],
    ids=["running", "failed", "will be restarted"],
)
def test_phase_during_init_follows_from_the_init_containers(
    init: ContainerRecord, expected: str
) -> None:
    facts = make_facts(make_record(WAITING), inits=[init])
    assert phase(facts) == "Pending"
    facts.finished = True
    assert phase(facts) == expected


def test_reason_of_a_pod_ended_by_its_node_comes_with_its_phase() -> None:
    facts = make_facts(make_record(ContainerRunning(NOW)))
    facts.failure_reason, facts.message = "DeadlineExceeded", "too long"
    before = status(make_pod(), facts, [], NOW)
    assert (before["phase"], "reason" in before) == ("Running", False)
    facts.finished = True
    after = status(make_pod(), facts, [], NOW)
    assert (after["phase"], after["reason"]) == ("Failed", "DeadlineExceeded")


def test_transition_time_is_kept_until_the_condition_changes() -> None:
    pod, facts = make_pod(), make_facts(make_record(ContainerRunning(NOW)))
    first = status(pod, facts, [], NOW)
    assert status(pod, facts, first["conditions"], LATER) == first

    facts.containers[0].state = ended(0)
    facts.containers[0].done = True
    second = status(pod, facts, first["conditions"], LATER)
    times = {c["type"]: c["lastTransitionTime"][-3:] for c in second["conditions"]}
    assert times == {
        "PodScheduled": "00Z",
        "Initialized": "00Z",
        "ContainersReady": "05Z",
        "Ready": "05Z",
    }


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            make_facts(make_record(WAITING), make_record(ContainerRunning(NOW))),
            ("ContainersNotReady", "containers with unready status: [main]"),
            id="one is waiting",
        ),
        pytest.param(
            make_facts(make_record(ended(0), done=True)), ("PodCompleted", None), id="done"
        ),
        pytest.param(
            make_facts(make_record(ended(1), done=True)), ("PodFailed", None), id="failed"
        ),
    ],
)
def test_condition_says_why_the_pod_is_not_ready(
    facts: PodState, expected: tuple[str, str | None]
) -> None:
    ready = status(make_pod(), facts, [], NOW)["conditions"][-1]
    assert (ready["type"], ready["status"]) == ("Ready", "False")
    assert (ready["reason"], ready.get("message")) == expected


def test_condition_names_the_init_containers_that_have_not_succeeded() -> None:
    facts = make_facts(make_record(WAITING), inits=[make_record(ContainerRunning(NOW))])
    initialized = status(make_pod(), facts, [], NOW)["conditions"][1]
    assert initialized["reason"] == "ContainersNotInitialized"
    assert initialized["message"] == "containers with incomplete status: [main]"


def test_quality_of_service_of_the_server_is_kept() -> None:
    pod = msgspec.structs.replace(make_pod(), status={"qosClass": "Guaranteed"})
    assert status(pod, make_facts(make_record(WAITING)), [], NOW)["qosClass"] == "Guaranteed"


def test_foreign_conditions_are_kept() -> None:
    theirs = {"type": "DisruptionTarget", "status": "True"}
    pod = msgspec.structs.replace(make_pod(), status={"conditions": [theirs]})
    wire = status(pod, make_facts(make_record(WAITING)), [], NOW)
    assert [c for c in wire["conditions"] if c["type"] == "DisruptionTarget"] == [theirs]


def test_restarted_container_has_its_last_termination() -> None:
    record = make_record(ContainerRunning(NOW), last=ended(137), restarts=1)
    [container] = status(make_pod(), make_facts(record), [], NOW)["containerStatuses"]
    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["exitCode"] == 137
    assert container["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    assert container["ready"] is True
