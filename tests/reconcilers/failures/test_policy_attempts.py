"""Attempts of jobs with a failure policy: each failure that it decides about is decided once."""

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from tests.reconcilers.failures.policy_jobs import (
    ANY_REPLICA,
    RESTART_WORKERS,
    aborted,
    elastic_tf,
    end_of,
    failure_reason,
    job_of,
    replacement,
    torch,
)
from tests.reconcilers.failures.torch_jobs import (
    after,
    at,
    attempts,
    causes,
    failed,
    planned,
    pods,
    running,
)
from tests.reconcilers.program_output.outputs import GLOO_CLOSED


def test_cause_is_decided_although_its_consequences_were_seen_at_the_same_time() -> None:
    rule = {"action": "FailJob", "onCauses": ["OutOfMemory"]}
    found = pods(
        job := torch(rule),
        worker1=failed(137, 30, reason="OOMKilled"),
        worker0=aborted(199),
        master0=aborted(200),
    )
    job = after(job, found, 220)
    assert failure_reason(job) == "FailJobAction"
    assert causes(job) == [(Cause.OUT_OF_MEMORY, "worker-1")]


def test_numbers_of_attempts_are_those_of_restarts_after_a_time_without_controller() -> None:
    job = torch()
    found = pods(job, worker1=failed(1, 30), worker0=aborted(100), master0=aborted(200))
    job = after(job, found, 220)
    assert end_of(job) == (JobPhase.RESTARTING, 1, 1)
    assert causes(job) == [(Cause.USER_CODE, "worker-1")]
    job = after(job, [], 240)
    labels = {"dlctl.dev/restart-attempt": "1"}
    again = {"metadata": {"uid": "b", "labels": labels}}
    job = after(job, pods(job, worker0=again, worker1=again, master0=again), 250)
    assert [one.number for one in attempts(job)] == [0, 1]


def test_late_replica_of_an_attempt_ends_no_other_one() -> None:
    job = torch(RESTART_WORKERS, limit=5)
    found = pods(job, worker1=failed(1, 30), worker0=aborted(200))
    job = after(job, found, 205)
    assert end_of(job) == (JobPhase.RUNNING, 0, 1)
    for seconds in (205, 210, 300):
        assert planned(job, found, seconds).status == job.status


def test_replacement_that_failed_while_no_controller_ran_is_decided_as_well() -> None:
    job = torch(RESTART_WORKERS, limit=1)
    job = after(job, pods(job, worker0=failed(1, 30)), 33)
    found = pods(job, worker0=replacement(1, 100, started=45))
    job = after(job, found, 220)
    assert failure_reason(job) == "ReachedMaxRestarts"


def test_end_that_the_job_tolerates_does_not_hide_a_later_one() -> None:
    job = elastic_tf({"action": "FailJob", "onCauses": ["OutOfMemory"]}, limit=5)
    found = pods(job, worker1=failed(137, 30), chief0=failed(137, 200, reason="OOMKilled", uid="c"))
    job = after(job, found, 220)
    assert failure_reason(job) == "FailJobAction"
    assert causes(job)[-1] == (Cause.OUT_OF_MEMORY, "chief-0")


@pytest.mark.parametrize("workers", [5, 6, 40])
def test_replica_deleted_with_many_that_the_job_tolerates_is_decided(workers: int) -> None:
    job = running(job_of("TFJob", limit=0, workers=workers, enableDynamicWorker=True))
    names = [f"worker{index}" for index in range(workers)]
    found: JSON = {name: failed(137, 20, name, reason="OOMKilled") for name in names}
    leaving = {"deletionTimestamp": at(55).isoformat(), "deletionGracePeriodSeconds": 30}
    job = after(job, pods(job, **found, chief0={"metadata": {"uid": "a", **leaving}}), 26)
    assert failure_reason(job) == "ReachedMaxRestarts"


@pytest.mark.parametrize("code", [1, 137], ids=["exit code", "out of memory"])
def test_replica_that_ends_after_one_that_the_job_tolerates_is_decided(code: int) -> None:
    job = elastic_tf()
    found: JSON = {"worker1": failed(137, 20)}
    job = after(job, pods(job, **found), 24)
    assert end_of(job) == (JobPhase.RUNNING, 0, 0)
    reason = "OOMKilled" if code == 137 else ""
    job = after(job, pods(job, **found, chief0=failed(code, 25, "c", reason=reason)), 29)
    assert failure_reason(job) == "ReachedMaxRestarts"
    assert len(attempts(job)) == 1


def test_replica_deleted_after_the_end_of_one_that_the_job_tolerates_is_decided() -> None:
    job = elastic_tf()
    found: JSON = {"worker1": failed(137, 20, reason="OOMKilled")}
    job = after(job, pods(job, **found), 24)
    leaving = {"deletionTimestamp": at(55).isoformat(), "deletionGracePeriodSeconds": 30}
    job = after(job, pods(job, **found, chief0={"metadata": {"uid": "a", **leaving}}), 26)
    assert failure_reason(job) == "ReachedMaxRestarts"


def test_ends_that_the_job_tolerates_are_not_decided() -> None:
    job = elastic_tf()
    found: JSON = {"worker1": failed(137, 20)}
    job = after(job, pods(job, **found), 24)
    found["worker0"] = failed(137, 25, "b", reason="OOMKilled")
    job = after(job, pods(job, **found), 29)
    assert end_of(job) == (JobPhase.RUNNING, 0, 0)
    assert after(job, pods(job, **found), 29).status == job.status


def test_rule_decides_about_a_failure_soon_after_another_replica_was_restarted() -> None:
    fatal = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    job = torch(fatal, ANY_REPLICA)
    found: JSON = {"worker0": failed(1, 30)}
    job = after(job, pods(job, **found), 34)
    assert end_of(job) == (JobPhase.RUNNING, 0, 1)
    job = after(job, pods(job, **found, worker1=failed(42, 60, "c")), 64)
    assert failure_reason(job) == "FailJobAction"
    assert job.status.failure is not None
    assert (job.status.failure.replica, job.status.failure.exit_code) == ("worker-1", 42)


def test_job_restarts_soon_after_a_replica_was_restarted_alone() -> None:
    job = torch(RESTART_WORKERS, limit=5)
    found: JSON = {"worker0": failed(1, 30)}
    job = after(job, pods(job, **found), 34)
    job = after(job, pods(job, **found, master0=failed(1, 60, "c")), 64)
    assert end_of(job) == (JobPhase.RESTARTING, 1, 2)
    assert [one.end_time for one in attempts(job)] == [at(30), at(60)]


@pytest.mark.parametrize("gone_s", [45, 400], ids=["not replaced yet", "replaced"])
def test_each_restart_of_a_replica_counts(gone_s: float) -> None:
    job = torch(ANY_REPLICA, limit=1)
    first: JSON = {"worker0": failed(1, 30)}
    job = after(job, pods(job, **first), 34)
    if gone_s < 80:
        first = {"worker0": {"metadata": {"uid": "b"}, "state": None, "phase": "Pending"}}
    job = after(job, pods(job, **first), gone_s if gone_s < 80 else 50)
    job = after(job, pods(job, **first, worker1=failed(1, 80, "c")), 84)
    assert failure_reason(job) == "ReachedMaxRestarts"


def test_replica_deleted_soon_after_another_was_restarted_is_decided() -> None:
    job = torch(RESTART_WORKERS, limit=5)
    found: JSON = {"worker0": failed(1, 30)}
    job = after(job, pods(job, **found), 34)
    leaving = {"deletionTimestamp": at(75).isoformat(), "deletionGracePeriodSeconds": 30}
    master = {"metadata": {"uid": "c", **leaving}}
    job = after(job, pods(job, **found, master0=master), 46)
    assert end_of(job) == (JobPhase.RESTARTING, 1, 1)


def test_consequence_of_a_failure_needs_no_decision_of_its_own() -> None:
    job = torch(ANY_REPLICA, limit=1)
    found: JSON = {"worker0": failed(1, 30)}
    job = after(job, pods(job, **found), 34)
    found["worker1"] = lost_peer = failed(1, 40, "c")
    lost_peer["state"]["terminated"]["message"] = GLOO_CLOSED
    job = after(job, pods(job, **found), 44)
    assert end_of(job) == (JobPhase.RUNNING, 0, 1)
    verdict = attempts(job)[0].verdict
    assert verdict is not None
    assert (verdict.replica, verdict.collateral) == ("worker-0", ("worker-1",))


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"master0": failed(137, 60, "c", reason="OOMKilled")}, id="out of memory"),
        pytest.param({"worker1": failed(134, 61, "c"), "master0": failed(1, 60, "d")}, id="two"),
        pytest.param(
            {
                "master0": {
                    "metadata": {
                        "uid": "c",
                        "deletionTimestamp": at(90).isoformat(),
                        "deletionGracePeriodSeconds": 30,
                    }
                }
            },
            id="deleted",
        ),
    ],
)
def test_each_failure_is_decided_once(second: JSON) -> None:
    job = torch(ANY_REPLICA, limit=9)
    found: JSON = {"worker0": failed(1, 30)}
    job = after(job, pods(job, **found), 34)
    found |= second
    job = after(job, pods(job, **found), 65)
    assert len(attempts(job)) == 2
    counted = job.status.counted_restarts
    for seconds in (65, 66, 70, 100, 130):
        plan = planned(job, pods(job, **found), seconds)
        assert (len(plan.status.attempts), plan.status.counted_restarts) == (2, counted)
        job = attrs.evolve(job, status=plan.status)


def test_end_of_a_replica_that_made_way_is_no_other_one() -> None:
    job = torch(ANY_REPLICA, limit=5)
    verdict = Verdict(Cause.SCALE_DOWN, Confidence.HIGH, "going", at(30), "worker-1", "w")
    moving = (Attempt(0, at(0), at(30), verdict),)
    job = attrs.evolve(job, status=attrs.evolve(job.status, attempts=moving))
    leaving = {"deletionTimestamp": at(60).isoformat(), "deletionGracePeriodSeconds": 30}
    stopped = {**failed(143, 40), "metadata": {"uid": "a", **leaving}}
    assert after(job, pods(job, worker1=stopped), 41).status.attempts == moving
