from typing import Any

import pytest

from dlctl.local.node.interrupted_pods import interrupted_pod
from tests.builders import NOW


def _pod(phase: str = "Running", node: str = "localhost", **state: Any) -> dict[str, Any]:
    container = {"name": "main", "ready": True, "state": state or {"running": {"startedAt": "x"}}}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": [container]}
    return {"spec": {"nodeName": node}, "status": status}


def test_pod_that_ran_has_failed_by_a_disruption() -> None:
    pod = interrupted_pod(_pod(), NOW)
    assert pod is not None
    status = pod["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Ready": "False",
        "DisruptionTarget": "True",
    }
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["startedAt"]) == (137, "x")
    assert interrupted_pod(pod, NOW) is None


def test_container_that_had_ended_keeps_its_exit_code() -> None:
    pod = interrupted_pod(_pod(terminated={"exitCode": 0}), NOW)
    assert pod is not None
    assert pod["status"]["containerStatuses"][0]["state"] == {"terminated": {"exitCode": 0}}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(_pod("Succeeded"), id="succeeded"),
        pytest.param(_pod("Failed"), id="failed"),
        pytest.param(_pod("Pending", node=""), id="without a node"),
        pytest.param({}, id="empty"),
    ],
)
def test_pod_that_does_not_run_stays_as_it_is(pod: dict[str, Any]) -> None:
    assert interrupted_pod(pod, NOW) is None
