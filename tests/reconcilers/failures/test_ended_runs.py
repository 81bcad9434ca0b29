"""Ends with wrong or missing times, and pods that did not end by themselves, are counted once."""

from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase, RestartRecord
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.failures.attempts import recorded_attempts
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.planning.job_plan import plan_job
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, training_job
from tests.reconcilers.failures.torch_jobs import (
    SETTINGS,
    TWO,
    after,
    at,
    attempts,
    failed,
    pods,
    running,
    torch_job,
)
from tests.reconcilers.launcher_job.builders import (
    WORKERS,
    batch_job,
    launcher_pod,
    mpi_job,
    observed,
)


def job_with_policy(*rules: JSON, **fields: Any) -> Job:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    policy = {"maxRestarts": 5, "rules": list(rules), **fields}
    manifest["spec"]["runPolicy"] = {"failurePolicy": policy}
    return make_job(manifest)


def with_long_backoff(job: Job) -> Job:
    """Return the job after failures of a worker for which its pod stays for minutes."""
    record = RestartRecord(5, 6, "old", "Error", at(10))
    return attrs.evolve(job, status=attrs.evolve(job.status, restarts={"worker-1": record}))


def marked(pod: JSON, uid: str, created: float) -> JSON:
    labels = {"dlctl.dev/restart-attempt": uid}
    metadata = {"uid": uid, "creationTimestamp": at(created).isoformat(), "labels": labels}
    return {**pod, "metadata": metadata}


@pytest.mark.parametrize("started", [None, 20.0], ids=["no time", "its start"])
def test_pod_whose_containers_report_nothing_fails_once(started: float | None) -> None:
    refused = {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "containerStatuses": [],
        **({"startTime": at(started).isoformat()} if started else {}),
    }
    job = with_long_backoff(running(job_with_policy({"action": "RestartReplica"})))
    for seconds in range(30, 300, 10):
        job = after(job, pods(job, worker1=refused), seconds)
    assert len(attempts(job)) == 1
    assert job.status.restarts["worker-1"].consecutive_ends == 7


def test_failed_pod_of_a_node_whose_clock_is_ahead_fails_once() -> None:
    job = running(torch_job())
    for seconds in range(30, 39):
        job = after(job, pods(job, worker1=failed(137, 130, started=125)), seconds)
    assert [one.end_time for one in attempts(job)] == [at(30)]


def test_another_pod_of_such_a_node_ends_the_next_attempt() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 130, started=125)), 30)
    job = after(job, pods(job, "b"), 50)
    job = after(job, pods(job, "b", worker0=failed(137, 160, started=125)), 60)
    assert [one.end_time for one in attempts(job)] == [at(30), at(60)]


@pytest.mark.parametrize("created", [0, 3600], ids=["long ago", "now"])
def test_kept_pod_whose_deletion_is_ahead_of_the_clock_ends_once(created: float) -> None:
    job = running(torch_job())
    deleted = {"deletionTimestamp": at(3620).isoformat(), "deletionGracePeriodSeconds": 0}
    metadata = {"uid": "kept", "creationTimestamp": at(created).isoformat(), **deleted}
    for seconds in range(30, 400, 10):
        job = after(job, pods(job, worker1={"metadata": metadata, "state": RUNNING}), seconds)
    assert [one.end_time for one in attempts(job)] == [at(30)]


def test_retired_worker_whose_end_is_ahead_of_the_clock_ends_once() -> None:
    job = running(torch_job())
    for seconds in range(30, 330, 10):
        now, found = at(seconds), pods(job, worker1=failed(137, 3630, started=3600))
        seen = observe(job, Children(found), now)
        replicas = [
            attrs.evolve(one, state=ReplicaState.RETIRED) if one.replica == TWO else one
            for one in seen.replicas
        ]
        seen = attrs.evolve(seen, replicas=tuple(replicas))
        new = recorded_attempts(job, seen, now, RunJudge(job, now))
        job = attrs.evolve(job, status=attrs.evolve(job.status, attempts=new))
    assert [one.end_time for one in attempts(job)] == [at(30), None]


def test_restart_in_place_counts_once_the_clock_has_passed_its_time() -> None:
    job = running(torch_job("OnFailure"))
    crashed = {"last_state": exited(1, at=at(40)), "restart_policy": "OnFailure", "state": RUNNING}
    for seconds in range(30, 50):
        job = after(job, pods(job, worker1=crashed), seconds)
    assert [one.end_time for one in attempts(job)] == [at(40), None]


def test_containers_that_cannot_start_fail_each_attempt() -> None:
    job = running(job_with_policy())
    for number, seconds in enumerate((30, 50, 80)):
        end = exited(128, reason="StartError", at=at(seconds))
        end["terminated"]["startedAt"] = "1970-01-01T00:00:00Z"
        not_started = marked({"phase": "Failed", "state": end}, str(number), seconds - 1)
        job = after(job, pods(job, worker1=not_started), seconds + 1)
        assert (job.status.phase, job.status.job_restarts) == (JobPhase.RESTARTING, number + 1)
        job = attrs.evolve(job, status=attrs.evolve(job.status, phase=JobPhase.CREATING))


def test_node_whose_clock_is_behind_does_not_hide_a_failure() -> None:
    job = running(job_with_policy())
    job = after(job, pods(job, worker1=marked(failed(3, 30), "0", 0)), 40)
    assert job.status.phase is JobPhase.RESTARTING
    job = attrs.evolve(job, status=attrs.evolve(job.status, phase=JobPhase.CREATING))
    again = marked(failed(3, 32, started=29), "1", 61)
    job = after(job, pods(job, worker1=again), 70)
    assert (job.status.phase, job.status.job_restarts) == (JobPhase.RESTARTING, 2)


@pytest.mark.parametrize("strategy", ["BlockingRecreate", "Recreate"])
def test_pods_that_a_suspension_has_deleted_do_not_fail_the_resumed_job(strategy: str) -> None:
    job = running(job_with_policy(restartStrategy=strategy))
    policy = job.run_policy
    stopped = attrs.evolve(job, run_policy=attrs.evolve(policy, suspended=True))
    stopped = after(stopped, pods(stopped), 60)
    deleted = {"deletionTimestamp": at(90).isoformat(), "deletionGracePeriodSeconds": 30}
    left = {"metadata": {"uid": "old", **deleted}}
    resumed = attrs.evolve(stopped, run_policy=policy)
    if strategy == "BlockingRecreate":
        # It begins when none of the suspended run is left that has not been deleted.
        resumed = after(resumed, pods(resumed, master0=left, worker0=left, worker1=left), 64)
        assert (resumed.status.phase, attempts(resumed)) == (JobPhase.CREATING, ())
    for seconds in (65, 66, 70):
        resumed = after(resumed, pods(resumed, "new", worker1=left), seconds)
    assert (resumed.status.phase, attempts(resumed)) == (JobPhase.RUNNING, ())


def test_failed_pod_of_a_launcher_is_counted_once_though_it_stays() -> None:
    job = mpi_job()
    evicted = launcher_pod("a", "Failed", age_s=60, reason="Evicted")
    for seconds in range(0, 300, 30):
        seen = observed(job, [batch_job(failed=1)], [evicted, launcher_pod()], now=at(seconds))
        planned = plan_job(job, seen, Desired(), at(seconds), SETTINGS)
        job = attrs.evolve(job, status=planned.status)
    assert job.status.restarts["launcher-0"].consecutive_ends == 1
    assert len(attempts(job)) == 1


def test_replicas_that_a_scale_up_adds_have_not_been_lost() -> None:
    job = mpi_job()
    there = [make_pod(job, one, state=RUNNING) for one in WORKERS]
    launched = [batch_job(active=1)], [launcher_pod()]
    status = plan_job(job, observed(job, *launched, there), Desired(), NOW, SETTINGS).status
    job = attrs.evolve(job, status=status)
    assert job.status.phase is JobPhase.RUNNING
    specs = [attrs.evolve(s, replicas=3) if s.type == "worker" else s for s in job.replica_specs]
    wanted = (*job.success_policy.running_replicas, Replica("worker", 2))
    success = attrs.evolve(job.success_policy, running_replicas=wanted)
    larger = attrs.evolve(job, replica_specs=tuple(specs), success_policy=success)
    planned = plan_job(larger, observed(larger, *launched, there), Desired(), at(60), SETTINGS)
    assert planned.status.attempts == ()
    lost = plan_job(job, observed(job, *launched, there[:1]), Desired(), at(60), SETTINGS)
    assert [one.verdict is not None for one in lost.status.attempts] == [True]
