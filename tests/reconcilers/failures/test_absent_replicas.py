"""Replicas whose pods vanish without a trace, and those that only seem to."""

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from tests.builders import exited, make_job, mxjob, training_job
from tests.reconcilers.failures.policy_jobs import (
    ANY_REPLICA,
    ENDED,
    PENDING,
    elastic_tf,
    end_of,
    failure_reason,
    job_of,
    torch,
    without,
)
from tests.reconcilers.failures.torch_jobs import (
    TWO,
    after,
    at,
    attempts,
    causes,
    failed,
    planned,
    pods,
    running,
)


@pytest.mark.parametrize("name", ["worker-1", "worker-0", "master-0"])
def test_replica_that_vanished_restarts_the_job(name: str) -> None:
    job = torch()
    plan = planned(job, without(pods(job), name), 30)
    job = attrs.evolve(job, status=plan.status)
    assert plan.pods == ()
    assert end_of(job) == (JobPhase.RESTARTING, 1, 0)
    assert causes(job) == [(Cause.PLATFORM, name)]


def test_rule_decides_about_a_replica_that_vanished() -> None:
    job = torch({"action": "RestartReplica", "onCauses": ["Platform"]}, limit=0)
    job = after(job, without(pods(job), "worker-1"), 30)
    assert failure_reason(job) == "ReachedMaxRestarts"


@pytest.mark.parametrize(
    ("states", "missing"),
    [
        pytest.param({"worker1": PENDING}, "worker-1", id="never started"),
        pytest.param({"worker0": PENDING}, "worker-1", id="others start"),
        pytest.param({}, "worker-1", id="not created yet"),
        pytest.param({"worker0": PENDING, "master0": PENDING}, "worker-1", id="none has started"),
    ],
)
def test_replica_that_has_not_run_is_created(states: JSON, missing: str) -> None:
    created = job_of()
    job = after(created, found := without(pods(created, **states), missing), 0)
    plan = planned(job, found, 30)
    assert plan.status == job.status
    assert [str(replica) for replica in plan.pods] == [missing]


@pytest.mark.parametrize(
    "worker",
    [
        pytest.param(ENDED, id="succeeded"),
        pytest.param({"state": exited(0), "restart_policy": "Never"}, id="about to succeed"),
        pytest.param({"phase": "Running", "state": None}, id="not reported"),
    ],
)
def test_replica_to_create_is_not_blamed_for_one_that_ended(worker: JSON) -> None:
    created = job_of()
    job = after(created, without(pods(created), "worker-1"), 0)
    job = after(job, without(pods(job, worker0=worker), "worker-1"), 1)
    assert attempts(job) == ()
    assert job.status.job_restarts == 0


def test_scaled_job_has_lost_no_replica() -> None:
    job = torch()
    (master, worker) = job.replica_specs
    larger = attrs.evolve(job, replica_specs=(master, attrs.evolve(worker, replicas=4)))
    larger = after(larger, pods(job), 30)
    assert attempts(larger) == ()
    # The third has run meanwhile, and the fourth could not be created.
    larger = after(larger, without(pods(larger), "worker-3"), 40)
    smaller = attrs.evolve(larger, replica_specs=job.replica_specs)
    found = without(pods(larger), "worker-1", "worker-3")
    lacking = attrs.evolve(smaller, status=after(larger, found, 45).status)
    assert lacking.status.job_restarts == 1
    assert attempts(after(smaller, without(pods(larger), "worker-3"), 45)) == ()


def test_replica_of_the_next_attempt_has_not_vanished_before_it_is_created() -> None:
    job = torch()
    job = after(job, without(pods(job), "worker-1"), 30)
    job = after(job, [], 60)
    assert job.status.phase is JobPhase.CREATING
    plan = planned(job, [], 60)
    assert len(plan.pods) == 3
    assert plan.status.job_restarts == 1


def test_replica_that_vanished_from_a_job_without_a_policy_is_replaced_alone() -> None:
    job = running(make_job(training_job("PyTorchJob", Master=1, Worker=2)))
    plan = planned(job, without(pods(job), "worker-1"), 30)
    assert [str(replica) for replica in plan.pods] == ["worker-1"]
    assert plan.status.attempts == ()


def test_worker_that_the_job_tolerates_is_replaced_alone() -> None:
    job = elastic_tf()
    plan = planned(job, without(pods(job), "worker-1"), 30)
    assert [str(replica) for replica in plan.pods] == ["worker-1"]
    assert plan.status.attempts == ()


def test_replica_that_vanishes_before_the_next_attempt_is_whole_restarts_the_job() -> None:
    job = torch(limit=5)
    job = after(job, pods(job, worker1=failed(1, 30)), 34)
    job = after(after(job, [], 60), [], 60)
    labels = {"dlctl.dev/restart-attempt": "1"}
    again: JSON = {"metadata": {"uid": "b", "labels": labels}}
    second: JSON = {"worker0": again, "worker1": {**again, **PENDING}, "master0": again}
    job = after(job, pods(job, **second), 70)
    assert (job.status.phase, len(attempts(job))) == (JobPhase.RUNNING, 1)
    job = after(job, without(pods(job, **second), "master-0"), 80)
    assert end_of(job) == (JobPhase.RESTARTING, 2, 1)
    assert causes(job)[1] == (Cause.PLATFORM, "master-0")


def test_replica_that_is_about_to_be_replaced_has_not_vanished() -> None:
    job = torch(ANY_REPLICA, limit=1)
    job = after(job, pods(job, worker1=failed(1, 30)), 34)
    plan = planned(job, without(pods(job), "worker-1"), 50)
    assert [str(replica) for replica in plan.pods] == ["worker-1"]
    assert plan.status.attempts == job.status.attempts


@pytest.mark.parametrize(
    "manifest", [training_job("PyTorchJob", Master=1, Worker=2), mxjob()], ids=["v1", "list form"]
)
def test_replica_that_vanishes_after_its_replacement_has_run_ends_another_attempt(
    manifest: JSON,
) -> None:
    manifest["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 5, "rules": [ANY_REPLICA]}}
    job = running(make_job(manifest))
    job = after(job, pods(job, worker1=failed(1, 30)), 34)
    job = after(job, found := pods(job, worker1={"metadata": {"uid": "b"}}), 50)
    job = after(job, without(found, job.child_name(TWO)), 60)
    assert causes(job)[1:] == [(Cause.PLATFORM, "worker-1")]


def test_failed_replica_of_a_kind_that_counts_it_as_running_has_not_vanished() -> None:
    # Kinds of the list form count a failed replica as running.
    policy = {"maxRestarts": 5, "rules": [ANY_REPLICA]}
    job = running(make_job(mxjob(runPolicy={"failurePolicy": policy})))
    job = after(job, pods(job, worker1=failed(1, 30)), 34)
    found = without(pods(job), "worker-1", f"worker-{job.runtime_id}-1")
    plan = planned(job, found, 50)
    assert [str(replica) for replica in plan.pods] == ["worker-1"]
    assert (len(plan.status.attempts), plan.status.counted_restarts) == (1, 1)
    lost = without(found, f"worker-{job.runtime_id}-0")
    assert len(planned(job, lost, 50).status.attempts) == 2


def test_replica_that_made_way_has_not_vanished() -> None:
    job = torch(ANY_REPLICA, limit=5)
    verdict = Verdict(Cause.SCALE_DOWN, Confidence.HIGH, "going", at(30), "worker-1", "w")
    moving = (Attempt(0, at(0), at(30), verdict),)
    # The status still counts it as running.
    job = attrs.evolve(job, status=attrs.evolve(job.status, attempts=moving))
    plan = planned(job, without(pods(job), "worker-1"), 60)
    assert plan.status.attempts == moving
    assert [str(replica) for replica in plan.pods] == ["worker-1"]


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param(failed(1, 30), id="failed"),
        pytest.param({"state": exited(1, at=at(30)), "restart_policy": "Never"}, id="about to"),
        pytest.param(ENDED, id="succeeded"),
    ],
)
def test_worker_that_was_added_is_not_blamed_for_one_that_ended(ended: JSON) -> None:
    small = running(make_job(training_job("JAXJob", Worker=1)))
    job = attrs.evolve(make_job(training_job("JAXJob", Worker=2)), status=small.status)
    job = after(job, without(pods(job), "worker-1"), 20)
    job = after(job, without(pods(job, worker0=ended), "worker-1"), 31)
    assert all(cause and cause[1] == "worker-0" for cause in causes(job))
