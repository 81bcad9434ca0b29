"""How a pod terminated and why, case by case."""

import datetime
from typing import Any

import msgspec
import pytest

from dlctl.api.exit_codes import ExitClass
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.reconcilers.termination import PHASE_WAIT_S, phase_wait_s, termination
from tests.builders import NOW, RUNNING, exited, make_job, make_pod
from tests.reconcilers.program_output.outputs import torchrun
from tests.reconcilers.terminations import (
    DISRUPTED,
    JOB,
    MINUTE,
    WORKER,
    deletion,
    found,
    termination_of,
)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_running_pod_has_no_termination(phase: str) -> None:
    assert termination_of(phase=phase) is None
    assert termination_of(phase=phase, state=RUNNING) is None
    assert termination_of(phase=phase, containerStatuses=None) is None


def test_reason_is_short_whatever_was_reported() -> None:
    long = "R" * 100_000
    ended = exited(1)
    ended["terminated"]["reason"] = long
    for end in (found(phase="Failed", reason=long), found(phase="Failed", state=ended)):
        assert end.reason.startswith("RRR")
        assert len(end.reason) <= 128


def test_message_of_a_pod_is_short_and_printable_whatever_was_reported() -> None:
    end = found(phase="Failed", reason="Evicted", message="\x1b[31mlow" + "M" * 100_000)
    assert end.message.startswith("lowMMM")
    assert len(end.message) <= 1024


def test_exit_zero_is_success_even_if_a_sidecar_keeps_the_pod_running() -> None:
    assert found(state=exited(0)).exit_class is ExitClass.SUCCESS


def test_succeeded_pod_is_success_even_without_container_statuses() -> None:
    assert found(phase="Succeeded", containerStatuses=None).exit_class is ExitClass.SUCCESS


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_permanent_exit_is_a_termination_under_every_policy(phase: str, policy: str) -> None:
    end = found(phase=phase, state=exited(1), restart_policy=policy)
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 1)
    assert end.message == "exit code 1 (general error)"


def test_permanent_exit_is_a_termination_even_if_the_kubelet_restarts_the_container() -> None:
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
def test_retryable_exit_that_the_kubelet_restarts_is_no_termination(
    state: dict[str, Any], last_state: dict[str, Any] | None
) -> None:
    assert termination_of(state=state, last_state=last_state) is None


def test_retryable_exit_of_a_failed_pod_is_a_termination() -> None:
    end = found(phase="Failed", state=exited(137), restart_policy="Never")
    assert end.exit_class is ExitClass.RETRYABLE
    assert not end.is_disruption


def test_retryable_exit_under_never_is_a_termination_even_if_a_sidecar_runs() -> None:
    end = found(phase="Running", state=exited(143), restart_policy="Never")
    assert end.exit_class is ExitClass.RETRYABLE


def test_success_after_a_retryable_exit_is_success() -> None:
    assert found(state=exited(0), last_state=exited(137)).exit_class is ExitClass.SUCCESS


@pytest.mark.parametrize("policy", RetryPolicy)
def test_unlisted_exit_code_is_classified_by_the_dialect(policy: RetryPolicy) -> None:
    end = found(phase="Failed", state=exited(134), retry_policy=policy)
    assert end.exit_class is policy.exit_class(134)


def test_out_of_memory_is_permanent_whatever_the_code() -> None:
    end = found(state=RUNNING, last_state=exited(137, reason="OOMKilled"))
    assert (end.exit_class, end.reason) == (ExitClass.PERMANENT, "OOMKilled")
    assert "out of memory" in end.message


def test_termination_message_is_included() -> None:
    state = exited(1)
    state["terminated"]["message"] = "no such file: data.rec\n"
    assert found(state=state).message == "exit code 1: no such file: data.rec"


def test_of_a_log_in_the_termination_message_the_last_line_is_included() -> None:
    state = exited(1)
    log = "Traceback (most recent call last):\n  File 'a.py', line 2\nValueError: no data\n=====\n"
    state["terminated"]["message"] = log
    assert found(state=state).message == "exit code 1: ValueError: no data"


def test_control_characters_of_a_termination_message_are_left_out() -> None:
    state = exited(1)
    state["terminated"]["message"] = "50 %\rValueError: \x1b[31mno data\x1b[0m\x07\n\n-----\n"
    assert found(state=state).message == "exit code 1: ValueError: no data"


def test_exit_code_is_that_of_the_process_which_torchrun_reports() -> None:
    state = exited(1)
    state["terminated"]["message"] = torchrun(3, -9)
    end = found(phase="Failed", state=state, restart_policy="Never")
    assert (end.exit_class, end.exit_code) == (ExitClass.RETRYABLE, 137)
    assert end.message.startswith("exit code 137 (killed (SIGKILL)")


@pytest.mark.parametrize("code", [0, 1, 143])
def test_exit_after_a_deletion_request_is_no_termination(code: int) -> None:
    assert termination_of(state=exited(code, at=NOW), metadata=deletion(NOW - MINUTE)) is None


@pytest.mark.parametrize("code", [0, 1, 143])
def test_exit_of_a_pod_terminated_by_its_node_is_no_termination(code: int) -> None:
    let_go = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 0}
    assert (
        termination_of(phase="Failed", state=exited(code, at=NOW - MINUTE), metadata=let_go) is None
    )


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_terminating_pod_without_container_statuses_has_no_termination(phase: str) -> None:
    assert termination_of(phase=phase, containerStatuses=None, metadata=deletion(NOW)) is None


@pytest.mark.parametrize(("code", "class_"), [(0, ExitClass.SUCCESS), (1, ExitClass.PERMANENT)])
def test_exit_before_a_deletion_request_counts(code: int, class_: ExitClass) -> None:
    end = found(state=exited(code, at=NOW - MINUTE), metadata=deletion(NOW))
    assert end.exit_class is class_


def test_failed_init_container_is_reported_with_its_code() -> None:
    init = [{"name": "fetch", "state": exited(3)}]
    end = found(phase="Failed", initContainerStatuses=init, state={"waiting": {}})
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 3)


@pytest.mark.parametrize("policy", [RetryPolicy.SIGNALS, RetryPolicy.TABLE_AND_SIGNALS])
@pytest.mark.parametrize("code", [1, 127, 137])
def test_exit_code_of_kubeflow_is_not_about_init_containers(policy: RetryPolicy, code: int) -> None:
    """Such as init-pytorch, which gives up after minutes in which the master has not started."""
    init = [{"name": "init-pytorch", "state": exited(code)}]
    pod = make_pod(JOB, WORKER, phase="Failed", initContainerStatuses=init, state={"waiting": {}})
    end = termination(pod, "mxnet", retry_policy=policy, now=NOW)
    assert end is not None
    assert (end.exit_class, end.exit_code) == (ExitClass.RETRYABLE, code)


def sidecar(policy: str) -> Pod:
    """Return a running pod whose init container ``proxy`` has crashed and been restarted."""
    wire = msgspec.to_builtins(make_pod(JOB, WORKER, state=RUNNING, restart_policy=policy))
    wire["spec"]["initContainers"] = [{"name": "proxy", "restartPolicy": "Always"}]
    crashed = {"name": "proxy", "state": RUNNING, "lastState": exited(1), "restartCount": 1}
    wire["status"]["initContainerStatuses"] = [crashed]
    return msgspec.convert(wire, Pod)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_crash_of_a_native_sidecar_is_no_termination(policy: str) -> None:
    assert termination(sidecar(policy), "mxnet", retry_policy=RetryPolicy.TABLE, now=NOW) is None


def test_termination_time_is_when_the_container_ended() -> None:
    assert found(state=exited(1, at=NOW - MINUTE)).time == NOW - MINUTE


@pytest.mark.parametrize("behind", [7 * MINUTE, datetime.timedelta(days=700_000)], ids=["", "far"])
def test_run_on_a_node_whose_clock_is_behind_is_not_before_its_pod(
    behind: datetime.timedelta,
) -> None:
    created = NOW - MINUTE
    end = found(
        state=exited(1, at=created + datetime.timedelta(seconds=6) - behind),
        metadata={"creationTimestamp": created.isoformat()},
    )
    # It ran for five seconds.
    assert end.started_at == created
    assert end.time == created + datetime.timedelta(seconds=5)


def test_run_of_a_container_that_could_not_start_ends_when_its_node_says() -> None:
    failed = exited(128, at=NOW - datetime.timedelta(seconds=20))
    failed["terminated"] |= {"reason": "StartError", "startedAt": "1970-01-01T00:00:00Z"}
    end = found(state=failed, metadata={"creationTimestamp": (NOW - MINUTE).isoformat()})
    assert end.time == NOW - datetime.timedelta(seconds=20)


def test_run_that_starts_after_the_last_year_and_ends_in_the_first_is_over_now() -> None:
    ended = exited(1)
    ended["terminated"] |= {
        "startedAt": "9999-12-31T23:59:59Z",
        "finishedAt": "0001-01-01T00:00:00Z",
    }
    end = found(state=ended, metadata={"creationTimestamp": (NOW - MINUTE).isoformat()})
    assert (end.started_at, end.time) == (NOW, NOW - MINUTE)


def test_clock_of_a_node_is_corrected_at_most_until_now() -> None:
    second = datetime.timedelta(seconds=1)
    state = exited(1, at=NOW - 7 * MINUTE)
    end = found(state=state, metadata={"creationTimestamp": (NOW - 4 * second).isoformat()})
    assert end.time == NOW


def test_termination_time_is_never_ahead_of_our_clock() -> None:
    assert found(state=exited(1, at=NOW + MINUTE)).time == NOW


def test_missing_termination_time_is_now() -> None:
    assert found(state={"terminated": {"exitCode": 1}}).time == NOW


def test_pod_without_container_statuses_ended_when_it_was_last_disrupted() -> None:
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": (NOW - ago).isoformat()}
        for type_, ago in (("DisruptionTarget", MINUTE), ("PodScheduled", MINUTE / 2))
    ]
    started = (NOW - 2 * MINUTE).isoformat()
    pod = {"phase": "Failed", "reason": "Evicted", "startTime": started, "conditions": conditions}
    assert found(containerStatuses=None, **pod).time == NOW - MINUTE


def test_permanent_exit_of_an_init_container_terminates_a_pod_that_would_retry_it() -> None:
    job = make_job()
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    init = {"name": "fetch", "state": waiting, "lastState": exited(127)}
    pod = make_pod(
        job, job.success_policy.success_replicas[0], phase="Pending", initContainerStatuses=[init]
    )

    end = termination(pod, "mxnet", retry_policy=job.replica_specs[0].retry_policy, now=NOW)

    assert end is not None
    assert (end.exit_class, end.exit_code) == (ExitClass.PERMANENT, 127)


def phase_wait_of(*, since_s: float, code: int = 1, reason: str = "Error", **pod: Any) -> float:
    end = exited(code)
    finished = NOW - datetime.timedelta(seconds=since_s)
    end["terminated"] |= {"finishedAt": finished.isoformat(), "reason": reason}
    found = make_pod(
        JOB, WORKER, **{"phase": "Running", "restart_policy": "Never"} | pod, state=end
    )
    return phase_wait_s(found, "mxnet", NOW)


@pytest.mark.parametrize("code", [1, 137, 143])
def test_phase_of_a_failed_pod_is_awaited_briefly(code: int) -> None:
    assert phase_wait_of(code=code, since_s=0.5) == PHASE_WAIT_S - 0.5
    assert phase_wait_of(code=code, since_s=PHASE_WAIT_S) == 0
    # The node's clock is slightly or far ahead.
    assert phase_wait_of(code=code, since_s=-1) == PHASE_WAIT_S + 1
    assert phase_wait_of(code=code, since_s=-3600) == 0


def test_phase_after_a_failed_init_container_is_awaited_unless_it_is_repeated() -> None:
    end = exited(143)
    end["terminated"]["finishedAt"] = NOW.isoformat()
    init = [{"name": "fetch", "state": end}]

    def wait_s(restart_policy: str) -> float:
        pod = make_pod(
            JOB,
            WORKER,
            phase="Pending",
            restart_policy=restart_policy,
            state={"waiting": {"reason": "PodInitializing"}},
            initContainerStatuses=init,
        )
        return phase_wait_s(pod, "mxnet", NOW)

    assert wait_s("Never") == PHASE_WAIT_S
    assert wait_s("OnFailure") == 0


def test_phase_is_awaited_two_seconds_beyond_rounding() -> None:
    assert phase_wait_of(since_s=0.99 + 1.99) > 0


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"phase": "Failed"}, id="phase is known"),
        pytest.param({"code": 0, "reason": "Completed"}, id="success"),
        pytest.param({"reason": "OOMKilled"}, id="out of memory"),
        pytest.param({"metadata": deletion(NOW)}, id="deleted"),
        pytest.param({"restart_policy": "OnFailure"}, id="repeated by the kubelet"),
        pytest.param(DISRUPTED, id="reason is known"),
    ],
)
def test_phase_that_adds_nothing_is_not_awaited(pod: dict[str, Any]) -> None:
    assert phase_wait_of(since_s=0, **pod) == 0
