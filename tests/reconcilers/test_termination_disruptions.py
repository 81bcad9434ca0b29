"""Runs that the cluster ended, and those that only seem so."""

import datetime
from typing import Any

import pytest

from dlctl.api.exit_codes import ExitClass
from dlctl.api.policies.retry_policy import RetryPolicy
from tests.builders import NOW, RUNNING, exited
from tests.reconcilers.terminations import (
    DISRUPTED,
    MINUTE,
    deletion,
    found,
    termination_of,
)

STORAGE = "Pod ephemeral local storage usage"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"reason": "Evicted", "message": "low on memory"}, id="eviction"),
        pytest.param({"reason": "Preempting"}, id="preemption by the kubelet"),
        pytest.param({"reason": "NodeLost"}, id="node loss"),
        pytest.param({"reason": "Terminated"}, id="node shutdown"),
        pytest.param(DISRUPTED, id="disruption target"),
    ],
)
@pytest.mark.parametrize("code", [1, 137])
def test_disruption_is_retryable_and_costs_no_failure_whatever_the_code(
    status: dict[str, Any], code: int
) -> None:
    end = found(phase="Failed", state=exited(code), **status)
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, True)


def test_evicted_pod_without_container_statuses_costs_no_failure() -> None:
    end = found(phase="Failed", reason="Evicted", message="low on disk", containerStatuses=None)
    assert (end.reason, end.message, end.is_disruption) == ("Evicted", "low on disk", True)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param(255, "Unknown", id="containerd, after the node was restarted"),
        pytest.param(137, "ContainerStatusUnknown", id="kubelet that has lost it"),
    ],
)
def test_unobserved_exit_is_retryable_and_costs_no_failure(code: int, reason: str) -> None:
    end = found(phase="Failed", state=exited(code, reason=reason))
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, True)
    assert "its end was not observed" in end.message
    again = termination_of(state=RUNNING, last_state=exited(code, reason=reason))
    assert again is None, "the kubelet runs it again in the same pod"


def test_exit_code_255_of_the_program_is_not_an_unobserved_exit() -> None:
    assert found(state=exited(255)).exit_class is ExitClass.PERMANENT


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_pod_evicted_from_a_lost_node_has_no_termination(phase: str) -> None:
    lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    asked = NOW - MINUTE
    assert (
        termination_of(phase=phase, state=RUNNING, conditions=[lost], metadata=deletion(asked))
        is None
    )


def test_success_stands_even_if_the_pod_was_disrupted() -> None:
    assert found(state=exited(0), **DISRUPTED).exit_class is ExitClass.SUCCESS


def disrupted(reason: str, after_s: float) -> dict[str, Any]:
    """Return a pod condition set this many seconds after NOW."""
    since = (NOW + datetime.timedelta(seconds=after_s)).isoformat()
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    return {"conditions": [{**condition, "lastTransitionTime": since}]}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "Failed", "reason": "Evicted"}, id="evicted"),
        pytest.param({"phase": "Failed", "reason": "Terminated"}, id="node shutdown"),
        pytest.param({"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}, id="admission"),
        pytest.param({"phase": "Failed"}, id="failed without a failed container"),
        pytest.param(
            {"phase": "Failed", **disrupted("TerminationByKubelet", 1)}, id="by the kubelet"
        ),
        pytest.param(disrupted("PreemptionByScheduler", -5), id="preempted before"),
        pytest.param(disrupted("EvictionByEvictionAPI", 0), id="evicted in the same second"),
    ],
)
def test_exit_zero_of_a_terminated_pod_is_an_interruption(status: dict[str, Any]) -> None:
    end = found(state=exited(0, at=NOW), **status)
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, True)


def test_exit_zero_before_the_disruption_is_success() -> None:
    later = disrupted("EvictionByEvictionAPI", 5)
    assert found(state=exited(0, at=NOW), **later).exit_class is ExitClass.SUCCESS


def test_exit_zero_at_an_unknown_time_is_success() -> None:
    end = found(state={"terminated": {"exitCode": 0}}, **disrupted("PreemptionByScheduler", -5))
    assert end.exit_class is ExitClass.SUCCESS


def test_exit_zero_before_the_pod_of_a_lost_node_is_collected_is_success() -> None:
    collected = disrupted("DeletionByPodGC", 300)
    end = found(phase="Failed", state=exited(0, at=NOW), **collected)
    assert end.exit_class is ExitClass.SUCCESS


def test_exit_zero_beside_a_failed_sidecar_is_success() -> None:
    containers = [{"name": "mxnet", "state": exited(0)}, {"name": "mesh", "state": exited(1)}]
    end = found(phase="Failed", containerStatuses=containers, restart_policy="Never")
    assert end.exit_class is ExitClass.SUCCESS


def test_exit_zero_of_a_pod_past_its_own_deadline_is_no_success() -> None:
    end = found(phase="Failed", reason="DeadlineExceeded", state=exited(0))
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, False)


def test_interruption_fails_a_replica_that_is_never_restarted() -> None:
    end = found(phase="Failed", reason="Evicted", state=exited(0), retry_policy=RetryPolicy.NONE)
    assert (end.exit_class, end.reason) == (ExitClass.PERMANENT, "Evicted")


@pytest.mark.parametrize(
    "reason",
    [
        "NodeAffinity", "NodeShutdown", "OutOfcpu", "OutOfephemeral-storage",
        "OutOfnvidia.com/gpu", "PodOSNotSupported", "SMTAlignmentError", "TopologyAffinityError",
        "UnexpectedAdmissionError",
    ],
)  # fmt: skip
def test_pod_rejected_by_its_restarted_node_costs_no_failure(reason: str) -> None:
    end = found(phase="Failed", reason=reason, state=exited(1))
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, True)


def test_pending_disruption_does_not_terminate_a_restarted_container() -> None:
    assert termination_of(state=RUNNING, last_state=exited(137), **DISRUPTED) is None


def test_pending_disruption_does_not_excuse_an_earlier_permanent_exit() -> None:
    end = found(state=RUNNING, last_state=exited(1), **DISRUPTED)
    assert end.exit_class is ExitClass.PERMANENT


def test_eviction_of_a_restarted_container_costs_no_failure() -> None:
    end = found(phase="Failed", reason="Evicted", last_state=exited(137))
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, True)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        pytest.param("DeadlineExceeded", "", id="deadline"),
        pytest.param(
            "Evicted", 'Usage of EmptyDir volume "shm" exceeds the limit "1Gi". ', id="shm"
        ),
        pytest.param("Evicted", f"{STORAGE} exceeds the total limit of containers 1Gi. ", id="pod"),
        pytest.param(
            "Evicted",
            'Container mxnet exceeded its local ephemeral storage limit "1Gi". ',
            id="container",
        ),
    ],
)
@pytest.mark.parametrize("state", [None, exited(137)], ids=["not started", "killed"])
def test_pod_past_a_limit_of_its_own_costs_a_failure(
    reason: str, message: str, state: dict[str, Any] | None
) -> None:
    end = found(phase="Failed", reason=reason, message=message, state=state)
    assert (end.exit_class, end.is_disruption) == (ExitClass.RETRYABLE, False)
