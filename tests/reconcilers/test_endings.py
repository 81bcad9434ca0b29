"""How a run ended and whose doing it was, case by case."""

import datetime
from typing import Any

import pytest

from dlctl.api.exitcodes import ExitClass, RetryRule
from dlctl.api.job import Replica
from dlctl.reconcilers.endings import Ending, ending
from tests.builders import NOW, RUNNING, exited, make_job, make_pod

JOB = make_job()
WORKER = Replica("worker", 0)
MINUTE = datetime.timedelta(minutes=1)
DISRUPTED: dict[str, Any] = {
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Preemption"}]
}


def deletion(asked: datetime.datetime) -> dict[str, Any]:
    deadline = asked + datetime.timedelta(seconds=30)
    return {"deletionTimestamp": deadline.isoformat(), "deletionGracePeriodSeconds": 30}


def end_of(*, rule: RetryRule = RetryRule.TABLE, **pod: Any) -> Ending | None:
    return ending(make_pod(JOB, WORKER, **pod), "mxnet", rule=rule, now=NOW)


def found(**pod: Any) -> Ending:
    end = end_of(**pod)
    assert end is not None
    return end


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_pod_whose_container_has_not_ended_has_no_ending(phase: str) -> None:
    assert end_of(phase=phase) is None
    assert end_of(phase=phase, state=RUNNING) is None
    assert end_of(phase=phase, containerStatuses=None) is None


def test_exit_zero_is_success_while_a_sidecar_keeps_the_pod_running() -> None:
    assert found(state=exited(0)).exit_class is ExitClass.SUCCESS


def test_succeeded_pod_is_success_even_without_word_of_its_containers() -> None:
    assert found(phase="Succeeded", containerStatuses=None).exit_class is ExitClass.SUCCESS


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_permanent_exit_is_an_ending_under_every_policy(phase: str, policy: str) -> None:
    end = found(phase=phase, state=exited(1), restart_policy=policy)
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 1)
    assert end.message == "exit code 1 (general error)"


def test_permanent_exit_is_an_ending_though_the_kubelet_runs_the_container_again() -> None:
    end = found(state=RUNNING, last_state=exited(2))
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 2)


@pytest.mark.parametrize(
    ("state", "last_state"),
    [
        pytest.param(exited(137), None, id="just ended"),
        pytest.param({"waiting": {"reason": "CrashLoopBackOff"}}, exited(143), id="waiting"),
        pytest.param(RUNNING, exited(130), id="running again"),
    ],
)
def test_retryable_exit_that_the_kubelet_repeats_is_no_ending(
    state: dict[str, Any], last_state: dict[str, Any] | None
) -> None:
    assert end_of(state=state, last_state=last_state) is None


def test_retryable_exit_of_a_failed_pod_is_an_ending() -> None:
    end = found(phase="Failed", state=exited(137), restart_policy="Never")
    assert end.exit_class is ExitClass.RETRYABLE
    assert not end.disruption


def test_retryable_exit_under_never_is_an_ending_while_a_sidecar_keeps_the_pod_running() -> None:
    end = found(phase="Running", state=exited(143), restart_policy="Never")
    assert end.exit_class is ExitClass.RETRYABLE


def test_success_after_a_retryable_exit_is_success() -> None:
    assert found(state=exited(0), last_state=exited(137)).exit_class is ExitClass.SUCCESS


@pytest.mark.parametrize("rule", RetryRule)
def test_code_that_the_table_does_not_list_is_what_the_dialect_says(rule: RetryRule) -> None:
    end = found(phase="Failed", state=exited(134), rule=rule)
    assert end.exit_class is rule.exit_class(134)


def test_out_of_memory_is_permanent_whatever_the_code_says() -> None:
    end = found(state=RUNNING, last_state=exited(137, reason="OOMKilled"))
    assert (end.exit_class, end.reason) == (ExitClass.PERMANENT, "OOMKilled")
    assert "out of memory" in end.message


def test_last_words_of_a_container_are_passed_on() -> None:
    state = exited(1)
    state["terminated"]["message"] = "no such file: data.rec\n"
    assert found(state=state).message == "exit code 1 (general error): no such file: data.rec"


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
    assert (end.exit_class, end.disruption) == (ExitClass.RETRYABLE, True)


def test_evicted_pod_without_word_of_its_containers_costs_no_failure() -> None:
    end = found(phase="Failed", reason="Evicted", message="low on disk", containerStatuses=None)
    assert (end.reason, end.message, end.disruption) == ("Evicted", "low on disk", True)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param(255, "Unknown", id="containerd, after the node was restarted"),
        pytest.param(137, "ContainerStatusUnknown", id="kubelet that does not find it any more"),
    ],
)
def test_end_that_nobody_saw_is_retryable_and_costs_no_failure(code: int, reason: str) -> None:
    end = found(phase="Failed", state=exited(code, reason=reason))
    assert (end.exit_class, end.disruption) == (ExitClass.RETRYABLE, True)
    assert "nobody saw it end" in end.message
    again = end_of(state=RUNNING, last_state=exited(code, reason=reason))
    assert again is None, "the kubelet runs it again in the same pod"


def test_exit_code_of_the_program_s_own_is_no_end_that_nobody_saw() -> None:
    assert found(state=exited(255)).exit_class is ExitClass.PERMANENT


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_pod_evicted_from_a_lost_node_has_no_ending(phase: str) -> None:
    lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    asked = NOW - MINUTE
    assert end_of(phase=phase, state=RUNNING, conditions=[lost], metadata=deletion(asked)) is None


def test_success_stands_though_the_pod_was_disrupted() -> None:
    assert found(state=exited(0), **DISRUPTED).exit_class is ExitClass.SUCCESS


def test_disruption_to_come_is_no_ending_of_a_container_that_runs_again() -> None:
    assert end_of(state=RUNNING, last_state=exited(137), **DISRUPTED) is None


def test_disruption_to_come_does_not_excuse_a_permanent_exit_before_it() -> None:
    end = found(state=RUNNING, last_state=exited(1), **DISRUPTED)
    assert end.exit_class is ExitClass.PERMANENT


def test_eviction_of_a_container_that_had_been_run_again_costs_no_failure() -> None:
    end = found(phase="Failed", reason="Evicted", last_state=exited(137))
    assert (end.exit_class, end.disruption) == (ExitClass.RETRYABLE, True)


def test_deadline_of_the_pod_is_its_own_failure() -> None:
    end = found(phase="Failed", reason="DeadlineExceeded", containerStatuses=None)
    assert (end.exit_class, end.disruption) == (ExitClass.RETRYABLE, False)


@pytest.mark.parametrize("code", [0, 1, 143])
def test_exit_after_somebody_asked_for_the_deletion_is_no_ending(code: int) -> None:
    assert end_of(state=exited(code, at=NOW), metadata=deletion(NOW - MINUTE)) is None


@pytest.mark.parametrize("code", [0, 1, 143])
def test_exit_of_a_pod_that_its_node_lets_go_is_no_ending(code: int) -> None:
    let_go = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 0}
    assert end_of(phase="Failed", state=exited(code, at=NOW - MINUTE), metadata=let_go) is None


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_pod_that_leaves_without_word_of_its_container_has_no_ending(phase: str) -> None:
    assert end_of(phase=phase, containerStatuses=None, metadata=deletion(NOW)) is None


@pytest.mark.parametrize(("code", "class_"), [(0, ExitClass.SUCCESS), (1, ExitClass.PERMANENT)])
def test_exit_before_somebody_asked_for_the_deletion_counts(code: int, class_: ExitClass) -> None:
    end = found(state=exited(code, at=NOW - MINUTE), metadata=deletion(NOW))
    assert end.exit_class is class_


def test_failed_init_container_is_named_by_its_code() -> None:
    init = [{"name": "fetch", "state": exited(3)}]
    end = found(phase="Failed", initContainerStatuses=init, state={"waiting": {}})
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 3)


def test_time_is_when_the_container_ended() -> None:
    assert found(state=exited(1, at=NOW - MINUTE)).time == NOW - MINUTE


def test_time_is_never_ahead_of_our_clock() -> None:
    assert found(state=exited(1, at=NOW + MINUTE)).time == NOW


def test_time_that_nobody_wrote_down_is_now() -> None:
    assert found(state={"terminated": {"exitCode": 1}}).time == NOW


def test_permanent_exit_of_an_init_container_ends_a_pod_that_would_try_it_for_ever() -> None:
    job = make_job()
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    init = {"name": "fetch", "state": waiting, "lastState": exited(127)}
    pod = make_pod(job, job.deciders.succeed[0], phase="Pending", initContainerStatuses=[init])

    end = ending(pod, "mxnet", rule=job.replica_specs[0].retries, now=NOW)

    assert end is not None
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 127)
