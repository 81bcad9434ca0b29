"""What the Job of a launcher and its pods show."""

import datetime
from typing import Any

import pytest

from dlctl.api.status.job_status import Failure, JobStatus, RestartRecord
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState, launcher_state
from tests.builders import NOW, RUNNING, exited
from tests.reconcilers.launcher_job.builders import (
    COMPLETE,
    FAILED,
    batch_job,
    launcher_pod,
    mpi_job,
)

JOB = mpi_job()


def failure(state: LauncherState) -> Failure:
    assert state.failure is not None
    return state.failure


def test_launcher_without_a_job_has_no_state() -> None:
    assert launcher_state(JOB, (), (), NOW) == LauncherState()


def test_only_running_pods_count() -> None:
    pods = [launcher_pod("a", "Failed"), launcher_pod("b"), launcher_pod("c", "Pending")]
    found = launcher_state(JOB, [batch_job(failed=1, active=2)], pods, NOW)
    assert (found.running_count, found.failed_count) == (1, 1)


def test_pods_of_another_job_do_not_count() -> None:
    other = batch_job(metadata={"uid": "uid-of-its-successor"})
    assert launcher_state(JOB, [other], [launcher_pod()], NOW).running_count == 0


@pytest.mark.parametrize(
    ("status", "count"),
    [
        pytest.param({"active": 1, "ready": 0}, 0, id="not ready"),
        pytest.param({"active": 1, "ready": 1}, 1, id="ready"),
        pytest.param({"active": 1}, 1, id="old server"),
    ],
)
def test_job_of_another_operator_counts_its_pods_itself(status: dict[str, Any], count: int) -> None:
    found = launcher_state(JOB, [batch_job(labels={"app": "pi"}, **status)], (), NOW)
    assert found.running_count == count


def test_adopted_pod_runs_before_it_is_ready() -> None:
    other = batch_job(labels={"app": "pi"}, active=1, ready=0)
    assert launcher_state(JOB, [other], [launcher_pod()], NOW).running_count == 1


def test_complete_job_has_no_failure_and_no_running_pod() -> None:
    found = launcher_state(JOB, [batch_job(COMPLETE)], [launcher_pod()], NOW)
    assert found.is_finished
    assert (found.failure, found.running_count) == (None, 0)


def test_failure_has_the_reason_of_the_job() -> None:
    late = {**FAILED, "reason": "DeadlineExceeded", "message": "Job was active too long"}
    found = launcher_state(JOB, [batch_job(late)], [launcher_pod(phase="Failed")], NOW)
    assert failure(found) == Failure("", "", "DeadlineExceeded", "Job was active too long", NOW)


def test_failure_without_a_reason_has_a_general_one() -> None:
    found = failure(launcher_state(JOB, [batch_job({"type": "Failed", "status": "True"})], (), NOW))
    assert (found.reason, found.message) == ("MPIJobFailed", "MPIJob ml/pi has failed")


def test_exceeded_limit_names_the_reason_and_message_of_the_newest_failed_pod() -> None:
    pods = [
        launcher_pod("new", "Failed", reason="Evicted", message="out of memory", age_s=1),
        launcher_pod("old", "Failed", reason="Shutdown", message="of the node", age_s=2),
    ]
    found = failure(launcher_state(JOB, [batch_job(FAILED)], pods, NOW))
    assert found.reason == "BackoffLimitExceeded/Evicted"
    assert found.message == "Job has reached the specified backoff limit: out of memory"


def test_failure_is_short_whatever_was_reported() -> None:
    long = "M" * 15_000
    pod = launcher_pod(phase="Failed", reason=long, message=long)
    for reason in ("BackoffLimitExceeded", long):
        condition = {"type": "Failed", "status": "True", "reason": reason, "message": long}
        found = failure(launcher_state(JOB, [batch_job(condition)], [pod], NOW))
        assert len(found.reason) < 512
        assert len(found.message) < 4096


def test_exceeded_limit_says_how_the_program_ended() -> None:
    ended = {"name": "mpi", "state": exited(1)}
    pod = launcher_pod("a", "Failed", containerStatuses=[ended])
    found = failure(launcher_state(JOB, [batch_job(FAILED)], [pod], NOW))
    assert found.reason == "BackoffLimitExceeded/"
    assert found.message.endswith(": pod pi-launcher-a: exit code 1 (general error)")


def test_exceeded_limit_without_a_pod_says_how_the_last_attempt_ended() -> None:
    last = RestartRecord(3, 3, "uid-of-a", "Error", NOW, exit_code=137)
    job = mpi_job(status=JobStatus(restarts={"launcher-0": last}))
    found = failure(launcher_state(job, [batch_job(FAILED)], (), NOW))
    assert found.reason == "BackoffLimitExceeded"
    assert "limit: exit code 137 (killed (SIGKILL)" in found.message


def test_newest_failure_is_known_even_if_the_kubelet_runs_it_again() -> None:
    early = exited(2, at=NOW - datetime.timedelta(seconds=9))
    ended = {"name": "mpi", "state": early}
    again = {"name": "mpi", "restartCount": 1, "lastState": exited(1), "state": RUNNING}
    pods = [
        launcher_pod("a", "Failed", age_s=20, containerStatuses=[ended]),
        launcher_pod("b", age_s=1, containerStatuses=[again]),
    ]
    found = launcher_state(JOB, [batch_job()], pods, NOW)
    assert found.last_failure is not None
    assert found.last_failure.exit_code == 1
    assert found.last_failed_pod == pods[1]


def test_success_is_no_failure() -> None:
    done = launcher_pod("a", "Succeeded", containerStatuses=[{"name": "mpi", "state": exited(0)}])
    assert launcher_state(JOB, [batch_job(COMPLETE)], [done], NOW).last_failure is None
