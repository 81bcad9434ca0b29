"""Attempts: which ends belong to which, and what the verdict on each is."""

import attrs
import pytest

from dlctl.api.status.job_status import Failure, JobPhase, JobState
from dlctl.api.status.verdict import MAX_ATTEMPTS, Attempt, Cause, Confidence
from dlctl.reconcilers.failures.attempts import final_attempts
from dlctl.reconcilers.lifecycle.job_limits import BACKOFF_LIMIT_EXCEEDED
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW, RUNNING, exited
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.failures.torch_jobs import (
    after,
    at,
    attempts,
    causes,
    failed,
    pods,
    running,
    torch_job,
)


def test_job_that_never_fails_records_no_attempt() -> None:
    job = running(torch_job())
    assert attempts(job) == ()
    done = after(job, pods(job, master0={"phase": "Succeeded", "state": exited(0)}), 60)
    assert done.status.phase is JobPhase.DONE
    assert attempts(done) == ()


def test_failure_before_the_first_status_ends_an_attempt_that_began_with_the_pods() -> None:
    job = torch_job()
    created = {"creationTimestamp": NOW.isoformat()}
    found = pods(job, worker1=failed(137, 30, reason="OOMKilled", metadata={"uid": "a", **created}))
    job = after(job, found, 32)
    (attempt,) = attempts(job)
    assert (job.status.start_time, attempt.start_time, attempt.end_time) == (NOW, NOW, at(30))


def test_first_failure_ends_the_attempt_that_began_with_the_job() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30, reason="OOMKilled")), 32)
    (attempt,) = attempts(job)
    assert (attempt.number, attempt.start_time, attempt.end_time) == (0, NOW, at(30))
    assert attempt.world_size == 3
    assert causes(job) == [(Cause.OUT_OF_MEMORY, "worker-1")]


def test_attempt_that_succeeds_unseen_is_recorded() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 32)
    finished = exited(0, at=at(50))
    finished["terminated"]["startedAt"] = at(40).isoformat()
    master = {"phase": "Succeeded", "state": finished, "metadata": {"uid": "b"}}
    done = after(job, pods(job, master0=master, worker1={"metadata": {"uid": "b"}}), 52)
    assert done.status.phase is JobPhase.DONE
    first, second = attempts(done)
    assert (first.end_time, first.lost_s) == (at(30), 10)
    assert (second.number, second.start_time, second.end_time) == (1, at(40), at(52))
    assert second.verdict is None


def test_job_that_succeeds_before_any_replica_runs_again_has_no_further_attempt() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 32)
    finished = exited(0, at=at(33))
    finished["terminated"]["startedAt"] = at(1).isoformat()
    master = {"phase": "Succeeded", "state": finished}
    done = after(job, pods(job, master0=master, worker1=failed(137, 30)), 34)
    assert done.status.phase is JobPhase.DONE
    (attempt,) = attempts(done)
    assert (attempt.end_time, attempt.lost_s) == (at(30), None)


def test_repeated_and_stale_reconciles_change_nothing() -> None:
    job = running(torch_job())
    found = pods(job, worker1=failed(137, 30))
    once = after(job, found, 32)
    assert attempts(after(once, found, 33)) == attempts(once)
    # The store shows the time before the failure again, and then the pod as it is deleted.
    assert attempts(after(once, pods(job), 34))[0] == attrs.evolve(attempts(once)[0], lost_s=4)


def test_end_that_follows_soon_joins_the_attempt_as_collateral() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    job = after(job, pods(job, worker1=failed(137, 30), worker0=failed(134, 50)), 51)
    (attempt,) = attempts(job)
    assert attempt.verdict is not None
    assert attempt.verdict.replica == "worker-1"
    assert attempt.verdict.collateral == ("worker-0",)
    assert attempt.end_time == at(30)


def test_better_proved_end_replaces_the_verdict() -> None:
    job = running(torch_job("OnFailure"))
    job = after(job, pods(job, worker1=failed(1, 30)), 31)
    evicted = {"phase": "Failed", "reason": "Evicted", "state": exited(137, at=at(28))}
    job = after(job, pods(job, worker1=failed(1, 30), worker0=evicted), 33)
    assert causes(job) == [(Cause.EVICTION, "worker-0")]


def test_worse_proved_end_does_not_replace_the_verdict() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30, reason="OOMKilled")), 31)
    # The first pod has been replaced meanwhile.
    job = after(job, pods(job, worker0=failed(137, 32)), 45)
    assert causes(job)[0] == (Cause.OUT_OF_MEMORY, "worker-1")


def test_attempt_is_followed_by_another_when_the_job_runs_again() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    job = after(job, pods(job, worker1={"state": None, "phase": "Pending"}), 45)
    assert len(attempts(job)) == 1
    job = after(job, pods(job, "b"), 50)
    first, second = attempts(job)
    assert first.lost_s == 20
    assert (second.number, second.start_time, second.end_time) == (1, at(50), None)


def test_elastic_job_runs_again_with_fewer_workers() -> None:
    job = running(read_job())
    over = Attempt(0, NOW, at(30))
    job = attrs.evolve(job, status=attrs.evolve(job.status, attempts=(over,)))
    job = after(job, [pod for pod in pods(job) if "worker-1" not in pod.metadata.name], 50)
    assert [one.end_time for one in attempts(job)] == [at(30), None]


def test_replica_that_fails_again_ends_another_attempt() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    # Its replacement has failed before the job was seen running.
    job = after(job, pods(job, worker1=failed(143, 44, "b", started=42)), 45)
    assert [one.end_time for one in attempts(job)] == [at(30), at(44)]
    assert attempts(job)[0].lost_s == 12


def test_replicas_that_fail_again_together_end_one_attempt() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker0=failed(137, 30), worker1=failed(137, 30)), 31)
    late, early = failed(143, 44, "b", started=42), failed(143, 44, "c", started=40)
    found = pods(job, worker0=late, worker1=early)
    job = after(job, found, 45)
    first, second = attempts(job)
    assert (first.end_time, second.start_time, second.end_time) == (at(30), at(40), at(44))
    assert attempts(after(job, found, 46)) == attempts(job)


def test_replacement_that_fails_within_the_same_second_ends_another_attempt() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 30)
    job = after(job, pods(job, worker1=failed(137, 30, "b", started=30)), 30)
    assert len(attempts(job)) == 2


def test_peer_that_fails_soon_after_the_job_runs_again_is_the_cause_of_its_end() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    replaced = {"metadata": {"uid": "b"}}
    job = after(job, pods(job, worker1=replaced), 35)
    broken = failed(1, 45)
    broken["state"]["terminated"]["message"] = "ValueError: the loss is not finite"
    job = after(job, pods(job, worker1=replaced, worker0=broken), 46)
    assert job.status.state is JobState.FAILED
    assert causes(job)[1] == (Cause.USER_CODE, "worker-0")
    verdict = attempts(job)[1].verdict
    assert verdict is not None
    assert "the loss is not finite" in verdict.message


def test_restart_in_place_is_an_attempt_of_its_own() -> None:
    job = running(torch_job("OnFailure"))
    crashed = exited(1, at=at(30))
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    restarting = {"state": waiting, "last_state": crashed, "restart_policy": "OnFailure"}
    job = after(job, pods(job, worker1=restarting), 31)
    assert causes(job) == [(Cause.USER_CODE, "worker-1")]
    again = pods(job, worker1={**restarting, "state": RUNNING})
    job = after(job, again, 40)
    assert [one.end_time for one in attempts(job)] == [at(30), None]
    assert attempts(after(job, again, 90)) == attempts(job)


@pytest.mark.parametrize(("since", "end"), [(None, 30), (28, 28)], ids=["deleted", "disrupted"])
def test_pod_that_others_delete_ends_the_attempt_of_a_running_job(
    since: float | None, end: float
) -> None:
    job = running(torch_job())
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    if since:
        disrupted["lastTransitionTime"] = at(since).isoformat()
    leaving = {
        "metadata": {
            "uid": "a",
            "deletionTimestamp": at(60).isoformat(),
            "deletionGracePeriodSeconds": 30,
        },
        "conditions": [disrupted],
    }
    job = after(job, pods(job, worker1=leaving), 31)
    assert causes(job) == [(Cause.PREEMPTION, "worker-1")]
    assert attempts(job)[0].end_time == at(end)


def test_pod_that_vanished_ends_the_attempt_of_a_job_that_needs_it() -> None:
    job = running(torch_job())
    job = after(job, [pod for pod in pods(job) if "master" not in pod.metadata.name], 30)
    assert causes(job) == [(Cause.PLATFORM, "master-0")]


def test_deadline_is_the_cause_of_a_job_that_ran_too_long() -> None:
    job = running(torch_job(activeDeadlineSeconds=60))
    job = after(job, pods(job), 61)
    assert causes(job) == [(Cause.DEADLINE, "")]
    (failure,) = (c.message for c in job.status.conditions if c.type == "Failed")
    assert failure == "Job linear has failed because it was active longer than specified deadline"


def test_pod_that_is_about_to_start_is_no_cause_of_an_exceeded_deadline() -> None:
    job = torch_job(activeDeadlineSeconds=60)
    found = pods(job, worker1={"state": None, "phase": "Pending"})
    job = after(after(job, found, 0), found, 61)
    assert causes(job) == [(Cause.DEADLINE, "")]


def test_image_that_cannot_be_pulled_is_the_cause_of_an_exceeded_deadline() -> None:
    job = torch_job(activeDeadlineSeconds=60)
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    found = pods(job, worker1={"state": waiting, "phase": "Pending"})
    job = after(after(job, found, 0), found, 61)
    assert causes(job) == [(Cause.BAD_COMMAND_OR_IMAGE, "worker-1")]


def test_failure_in_the_status_is_that_of_the_replica_to_blame() -> None:
    job = running(torch_job())
    found = pods(job, worker0=failed(1, 29), worker1=failed(1, 30, reason="OOMKilled"))
    job = after(job, found, 31)
    assert job.status.failure is not None
    assert job.status.failure.replica == "worker-1"
    assert causes(job) == [(Cause.OUT_OF_MEMORY, "worker-1")]


def test_condition_of_a_failed_job_names_its_first_cause() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(1, 30)), 31)
    (failure,) = (c.message for c in job.status.conditions if c.type == "Failed")
    assert failure == (
        'job "linear" is failing because "Worker" replica(s) failed. '
        "First cause: UserCode, worker-1 (rank 2), low confidence: exit code 1: general error"
    )


def test_condition_and_failure_do_not_repeat_the_log_of_a_program() -> None:
    job = running(torch_job())
    end = failed(1, 30)
    log = "step 1\nTraceback (most recent call last):\n  File 'a.py', line 2\nValueError: no data"
    end["state"]["terminated"]["message"] = log
    job = after(job, pods(job, worker1=end), 31)
    assert job.status.failure is not None
    assert job.status.failure.message == "exit code 1: ValueError: no data"
    (failure,) = (c.message for c in job.status.conditions if c.type == "Failed")
    assert failure.count("ValueError") == 1
    assert "Traceback" not in failure


def test_restart_that_exceeds_the_backoff_limit_is_no_attempt() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    recorded = attempts(job)
    restarted = (*recorded, Attempt(1, at(31)))
    given_up = Failure("", "", BACKOFF_LIMIT_EXCEEDED, "no restart is left", at(33))
    observed = observe(job, Children(()), at(33))
    assert final_attempts(restarted, job, observed, given_up) == recorded
    late = attrs.evolve(given_up, time=at(90))
    assert len(final_attempts(restarted, job, observed, late)) == 2


def test_messages_are_bounded() -> None:
    job = running(torch_job())
    end = failed(1, 30)
    end["state"]["terminated"]["message"] = "x" * 5000
    job = after(job, pods(job, worker1=end), 31)
    assert all(len(condition.message) <= 1024 for condition in job.status.conditions)
    assert all(len(one.verdict.message) <= 512 for one in attempts(job) if one.verdict)


def test_success_and_suspension_end_an_attempt_without_a_verdict() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    job = after(job, pods(job, "b"), 50)
    success = {"phase": "Succeeded", "state": exited(0), "metadata": {"uid": "b"}}
    done = after(job, pods(job, "b", master0=success), 80)
    assert [one.end_time for one in attempts(done)] == [at(30), at(80)]
    assert causes(done)[1] is None
    policy = attrs.evolve(job.run_policy, suspended=True)
    stopped = after(attrs.evolve(job, run_policy=policy), pods(job, "b"), 80)
    assert causes(stopped)[1] is None
    resumed = attrs.evolve(stopped, run_policy=job.run_policy)
    resumed = after(after(resumed, [], 90), pods(job, "c"), 95)
    assert [one.number for one in attempts(resumed)] == [0, 1, 2]


def test_oldest_attempts_are_forgotten() -> None:
    job = running(torch_job())
    for number in range(MAX_ATTEMPTS + 5):
        start = number * 1000.0
        end = failed(137, start + 500, f"run-{number}", started=start)
        job = after(job, pods(job, f"run-{number}", worker1=end), start + 501)
        job = after(job, pods(job, f"run-{number + 1}"), start + 900)
    assert len(attempts(job)) == MAX_ATTEMPTS
    assert attempts(job)[-1].number == MAX_ATTEMPTS + 5


def test_confidence_of_evidence_from_the_api_is_high() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30, reason="OOMKilled")), 31)
    verdict = attempts(job)[0].verdict
    assert verdict is not None
    assert verdict.confidence is Confidence.HIGH
