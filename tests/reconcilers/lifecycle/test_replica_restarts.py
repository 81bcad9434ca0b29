"""How long a failed replica waits, and how its attempts and failures are counted."""

import datetime
from typing import Any

import pytest

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import Replica
from dlctl.api.status.job_status import JobStatus, RestartRecord
from dlctl.reconcilers.lifecycle.replica_restarts import (
    RESTART_BACKOFF,
    next_restart_at,
    record_restarts,
)
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.termination import Termination
from tests.builders import NOW, make_job, make_pod

BACKOFF = RESTART_BACKOFF
WORKER = Replica("worker", 0)
JOB = make_job()


def failed(*, uid: str = "pod-1", ran_s: float | None = 5, **end: Any) -> Observed:
    """Return a snapshot of one worker whose pod ended after this many seconds."""
    started = None if ran_s is None else NOW - datetime.timedelta(seconds=ran_s)
    ended = Termination(
        ExitClass.RETRYABLE, "Error", "exit code 137", NOW, started_at=started, **end
    )
    pod = make_pod(JOB, WORKER, metadata={"uid": uid})
    return Observed((ObservedReplica(WORKER, ReplicaState.FAILED_RETRYABLE, pod, ended),))


def after(*snapshots: Observed) -> RestartRecord:
    """Return the worker's record after these snapshots, one status after another."""
    status = JobStatus()
    for snapshot in snapshots:
        status = JobStatus(restarts=record_restarts(status, snapshot, BACKOFF))
    return status.restarts["worker-0"]


@pytest.mark.parametrize(
    ("tries", "delay_s"), [(1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (7, 300), (10_000, 300)]
)
def test_backoff_doubles_from_ten_seconds_to_five_minutes(tries: int, delay_s: float) -> None:
    assert BACKOFF.delay_s(tries) == delay_s


def test_backoff_starts_when_the_replica_ended() -> None:
    assert next_restart_at(after(failed()), BACKOFF) == NOW + datetime.timedelta(seconds=10)


def test_replica_that_never_ended_does_not_wait() -> None:
    assert next_restart_at(None, BACKOFF) is None


def test_pod_is_counted_once_however_often_it_is_observed() -> None:
    record = after(failed(), failed(), failed())
    assert (record.failures, record.consecutive_ends, record.pod_uid) == (1, 1, "pod-1")


def test_each_failed_pod_adds_an_attempt() -> None:
    record = after(failed(uid="pod-1"), failed(uid="pod-2"), failed(uid="pod-3"))
    assert (record.failures, record.consecutive_ends, record.pod_uid) == (3, 3, "pod-3")


def test_disruption_adds_an_attempt_but_no_failure() -> None:
    record = after(failed(uid="pod-1", is_disruption=True), failed(uid="pod-2", is_disruption=True))
    assert (record.failures, record.consecutive_ends) == (0, 2)


def test_long_run_resets_the_backoff_but_keeps_the_failures() -> None:
    record = after(failed(uid="pod-1"), failed(uid="pod-2"), failed(uid="pod-3", ran_s=600))
    assert (record.failures, record.consecutive_ends) == (3, 1)


@pytest.mark.parametrize("ran_s", [599.0, None])
def test_short_run_or_one_of_unknown_length_does_not_reset_the_backoff(ran_s: float | None) -> None:
    assert after(failed(uid="pod-1"), failed(uid="pod-2", ran_s=ran_s)).consecutive_ends == 2


def test_record_contains_how_the_pod_ended() -> None:
    record = after(failed(exit_code=137))
    assert (record.reason, record.exit_code, record.finished_at) == ("Error", 137, NOW)


@pytest.mark.parametrize(
    "state",
    [state for state in ReplicaState if state is not ReplicaState.FAILED_RETRYABLE],
)
def test_replica_that_has_not_failed_is_not_counted(state: ReplicaState) -> None:
    assert record_restarts(JobStatus(), Observed((ObservedReplica(WORKER, state),)), BACKOFF) == {}


def test_record_of_a_restarted_replica_is_kept() -> None:
    status = JobStatus(restarts=record_restarts(JobStatus(), failed(), BACKOFF))
    running = Observed((ObservedReplica(WORKER, ReplicaState.RUNNING),))
    assert record_restarts(status, running, BACKOFF) == status.restarts


def test_failed_replica_without_a_termination_raises() -> None:
    with pytest.raises(ValueError, match="worker-0 failed without a terminated pod"):
        record_restarts(
            JobStatus(),
            Observed((ObservedReplica(WORKER, ReplicaState.FAILED_RETRYABLE),)),
            BACKOFF,
        )
