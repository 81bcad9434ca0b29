"""When a job is complete, and which failure is its cause."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Cause, Confidence, Verdict
from dlctl.reconcilers.status.completion import Completion, completion
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, observed_of, training_job

SCHEDULER = Replica("scheduler", 0)
FIRST, SECOND = Replica("worker", 0), Replica("worker", 1)
EARLIER = NOW - datetime.timedelta(minutes=1)
JOB = make_job()


def pod(replica: Replica, **kwargs: Any) -> Pod:
    return make_pod(JOB, replica, **kwargs)


def completion_of(*pods: Pod) -> Completion | None:
    return completion(JOB, observed_of(JOB, *pods), NOW)


def test_job_with_missing_replicas_is_not_complete() -> None:
    assert completion_of() is None


def test_chief_success_completes_the_job() -> None:
    assert completion_of(pod(SCHEDULER, state=exited(0))) == Completion()


def test_chief_success_beats_worker_failure() -> None:
    assert (
        completion_of(pod(SCHEDULER, state=exited(0)), pod(FIRST, state=exited(1))) == Completion()
    )


def test_success_of_all_but_the_chief_does_not_complete_the_job() -> None:
    pods = [pod(replica, state=exited(0)) for replica in JOB.replicas if replica != SCHEDULER]
    assert completion_of(pod(SCHEDULER, state=RUNNING), *pods) is None


def test_chief_is_the_replica_that_the_policy_names() -> None:
    chief = {"chief": {"replicaName": "WORKER", "replicaIndex": 1}}
    job = make_job(terminationPolicy=chief)
    assert completion(job, observed_of(job, make_pod(job, FIRST, state=exited(0))), NOW) is None
    ended = completion(job, observed_of(job, make_pod(job, SECOND, state=exited(0))), NOW)
    assert ended == Completion()


def test_started_job_whose_chief_has_no_replicas_ends_with_its_workers() -> None:
    job = make_job(training_job("PaddleJob", Master=0, Worker=2))
    job = attrs.evolve(job, status=attrs.evolve(job.status, phase=JobPhase.RUNNING))
    ended = [make_pod(job, replica, state=exited(0)) for replica in (FIRST, SECOND)]
    assert completion(job, observed_of(job, *ended), NOW) == Completion()
    assert completion(job, observed_of(job, ended[0]), NOW) is None


@pytest.mark.parametrize(
    ("blamed", "replica"),
    [
        pytest.param("worker-1", "worker-1", id="the one to blame"),
        pytest.param("", "worker-0", id="the first to end"),
        pytest.param("server-0", "worker-0", id="not one that ended in another attempt"),
    ],
)
def test_failure_is_that_of_the_replica_to_blame(blamed: str, replica: str) -> None:
    pods = pod(FIRST, state=exited(1, at=EARLIER)), pod(SECOND, state=exited(1))
    verdict = Verdict(Cause.EVICTION, Confidence.HIGH, "evicted", NOW, blamed)
    ended = completion(JOB, observed_of(JOB, *pods), NOW, verdict)
    assert ended is not None
    assert ended.failure is not None
    assert ended.failure.replica == replica


def test_replica_that_the_job_tolerates_is_not_its_failure() -> None:
    wire = training_job("TFJob", Master=1, PS=1, Worker=2)
    wire["spec"]["enableDynamicWorker"] = True
    job = make_job(wire)
    server = make_pod(job, Replica("ps", 0), phase="Failed", state=exited(1))
    tolerated = make_pod(job, FIRST, state=exited(127, at=EARLIER))
    verdict = Verdict(Cause.EVICTION, Confidence.HIGH, "evicted", EARLIER, str(FIRST))
    ended = completion(job, observed_of(job, server, tolerated), NOW, verdict)
    assert ended is not None
    assert ended.failure is not None
    assert (ended.failure.replica, ended.failure.exit_code) == ("ps-0", 1)


@pytest.mark.parametrize(("policy", "fails"), [("Never", False), ("ExitCode", True)])
def test_exit_code_fails_a_job_of_dynamic_workers_if_they_go_by_it(
    policy: str, fails: bool
) -> None:
    wire = training_job("TFJob", Master=1, Worker=2)
    wire["spec"]["enableDynamicWorker"] = True
    wire["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = policy
    job = make_job(wire)
    failed = make_pod(job, SECOND, phase="Failed", state=exited(1))
    assert (completion(job, observed_of(job, failed), NOW) is not None) is fails


@pytest.mark.parametrize("replica", [SCHEDULER, FIRST])
def test_permanent_exit_of_any_replica_fails_the_job(replica: Replica) -> None:
    ended = completion_of(pod(replica, state=exited(1)))
    assert ended is not None
    assert ended.failure is not None
    assert ended.failure.replica == str(replica)
    assert ended.failure.pod == JOB.child_name(replica)
    assert ended.failure.exit_code == 1


def test_permanent_exit_fails_the_job_though_the_kubelet_runs_the_container_again() -> None:
    ended = completion_of(pod(FIRST, state=RUNNING, last_state=exited(127)))
    assert ended is not None
    assert ended.failure is not None
    assert "not found" in ended.failure.message


def test_earliest_failure_is_the_cause() -> None:
    ended = completion_of(
        pod(FIRST, state=exited(2, at=NOW)),
        pod(SECOND, state=exited(139, at=EARLIER)),
    )
    assert ended is not None
    assert ended.failure is not None
    assert (ended.failure.replica, ended.failure.time) == ("worker-1", EARLIER)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "Failed", "state": exited(137)}, id="retryable exit"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, id="eviction"),
        pytest.param({"state": exited(143)}, id="about to be restarted"),
    ],
)
def test_retryable_failure_does_not_fail_the_job(status: dict[str, Any]) -> None:
    assert completion_of(pod(SCHEDULER, **status)) is None
