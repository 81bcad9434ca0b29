"""Restarts of a whole job: when, how often, and what the next run keeps of the last one."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import LAUNCHER, WORKER, Job, Replica
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus, RestartRecord
from dlctl.api.status.membership import Membership
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from dlctl.reconcilers.lifecycle import job_restarts
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF
from dlctl.reconcilers.observe import Children, Observed, observe
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.restart_attempts import RESTART_ATTEMPT
from dlctl.reconcilers.termination import Termination
from tests import mpi_v2beta1 as v2beta1
from tests.builders import NOW, RUNNING, make_job, make_pod, training_job
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.launcher_job.builders import OURS, batch_job
from tests.reconcilers.membership.builders import adding

LAUNCHER_0, FIRST = Replica(LAUNCHER, 0), Replica(WORKER, 0)
LIMITS = RestartLimits(RESTART_BACKOFF)
RECORD = RestartRecord(1, 2, "uid-of-launcher-0", "Error", NOW)
MEMBERSHIP = Membership(
    members=(1, 3), hosts=(1,), retired=frozenset({1}), observed_replicas=2, generation=7
).with_scaling(adding(3))


def elastic(*, limit: int = 3, restarts: int = 0) -> Job:
    """Return a running job with a membership, and records of its launcher and a worker."""
    job = attrs.evolve(read_job(), elasticity=Elasticity(job_restart_limit=limit))
    records = {"launcher-0": RECORD, "worker-0": RECORD}
    status = JobStatus(
        phase=JobPhase.RUNNING,
        conditions=tuple(
            Condition.at(NOW, type_, type_, "")
            for type_ in (conditions.CREATED, conditions.RUNNING)
        ),
        replica_statuses=(ReplicaStatus(WORKER, JobState.RUNNING, {}),),
        restarts=records,
        job_restarts=restarts,
        membership=MEMBERSHIP,
    )
    return attrs.evolve(job, status=status)


def observed(state: ReplicaState, replica: Replica = LAUNCHER_0) -> Observed:
    end = Termination(ExitClass.RETRYABLE, "Error", "exit code 137", NOW)
    pod = make_pod(read_job(), replica, state=RUNNING)
    return Observed((ObservedReplica(replica, state, pod, end),))


FAILED = observed(ReplicaState.FAILED_RETRYABLE)


@pytest.mark.parametrize(
    ("found", "restarts"),
    [
        pytest.param(FAILED, True, id="launcher failed"),
        pytest.param(observed(ReplicaState.FAILED_PERMANENT), False, id="failed for good"),
        pytest.param(observed(ReplicaState.RUNNING), False, id="running"),
        pytest.param(observed(ReplicaState.FAILED_RETRYABLE, FIRST), False, id="worker failed"),
        pytest.param(Observed(()), False, id="nothing"),
    ],
)
def test_failed_launcher_restarts_the_job(found: Observed, restarts: bool) -> None:
    assert job_restarts.should_restart(elastic(), found) is restarts


def test_job_without_restarts_is_not_restarted() -> None:
    assert not job_restarts.should_restart(elastic(limit=0), FAILED)
    assert not job_restarts.should_restart(make_job(), FAILED)


@pytest.mark.parametrize(("restarts", "reached"), [(0, False), (2, False), (3, True), (4, True)])
def test_limit_counts_all_restarts_of_the_job(restarts: int, reached: bool) -> None:
    assert job_restarts.is_limit_reached(elastic(limit=3, restarts=restarts)) is reached


def test_restarted_job_forgets_its_run_but_not_its_launchers_failures() -> None:
    job = elastic(restarts=1)
    status, note = job_restarts.restarting_status(job, job.status, "exit code 137", NOW)
    assert (status.phase, status.job_restarts) == (JobPhase.RESTARTING, 2)
    assert [c.type for c in status.conditions] == ["Created"]
    assert (status.replica_statuses, dict(status.restarts)) == ((), {"launcher-0": RECORD})
    message = "TrainingJob ml/linear restarted (attempt 2): exit code 137"
    assert note == EventNote("Warning", "TrainingJobRestarting", message)


def test_restarted_job_has_no_hosts_and_may_reuse_names_of_workers() -> None:
    job = elastic()
    status, _ = job_restarts.restarting_status(job, job.status, "exit code 137", NOW)
    reset = Membership(members=(1, 3), observed_replicas=2, generation=7)
    assert status.membership == reset.with_scaling(adding(3))


def test_cause_of_a_restart_is_how_the_launcher_ended() -> None:
    job = elastic()
    assert job_restarts.failure_text(job, FAILED) == "exit code 137"
    assert job_restarts.failure_text(job, Observed(())) == "it has ended"


@pytest.mark.parametrize(("after_s", "left_s"), [(0, 20.0), (5, 15.0), (20, 0.0), (30, -10.0)])
def test_backoff_is_that_of_the_launcher(after_s: float, left_s: float) -> None:
    now = NOW + datetime.timedelta(seconds=after_s)
    assert job_restarts.restart_left_s(elastic(), LIMITS, now) == left_s


def test_launcher_that_never_failed_does_not_wait() -> None:
    job = elastic()
    job = attrs.evolve(job, status=attrs.evolve(job.status, restarts={"worker-0": RECORD}))
    assert job_restarts.restart_left_s(job, LIMITS, NOW) == 0.0


@pytest.mark.parametrize(("phase", "is_kept"), [("Failed", True), ("Running", False)])
def test_only_the_ended_pod_to_blame_stays_until_the_backoff_ends(
    phase: str, is_kept: bool
) -> None:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    manifest["spec"]["runPolicy"] = {"failurePolicy": {}}
    job = make_job(manifest)
    blamed = job.child_name(FIRST)
    verdict = Verdict(Cause.USER_CODE, Confidence.LOW, "exit code 1", NOW, str(FIRST), blamed)
    status = attrs.evolve(job.status, attempts=(Attempt(0, NOW, NOW, verdict),))
    pods = [
        make_pod(job, replica, phase=phase if replica == FIRST else "Failed", state=RUNNING)
        for replica in job.replicas
    ]
    kept = job_restarts.kept_pods(
        attrs.evolve(job, status=status), observe(job, Children(pods), NOW)
    )
    assert kept == ({blamed} if is_kept else set())


@pytest.mark.parametrize(
    ("strategy", "label", "is_deleted", "is_cleared"),
    [
        pytest.param("Recreate", "0", False, True, id="of the last attempt"),
        pytest.param("Recreate", "", False, False, id="without a label"),
        pytest.param("Recreate", "x", False, False, id="malformed label"),
        pytest.param("Recreate", "9", False, False, id="label of a later attempt"),
        pytest.param("Recreate", "9", True, True, id="deleted"),
        pytest.param("BlockingRecreate", "0", True, False, id="barrier"),
    ],
)
def test_no_pod_stays_that_would_count_as_one_of_the_next_attempt(
    strategy: str, label: str, is_deleted: bool, is_cleared: bool
) -> None:
    manifest = training_job("PyTorchJob", Master=1)
    manifest["spec"]["runPolicy"] = {"failurePolicy": {"restartStrategy": strategy}}
    job = make_job(manifest)
    job = attrs.evolve(job, status=JobStatus(phase=JobPhase.RESTARTING, job_restarts=1))
    metadata: dict[str, Any] = {"labels": {"dlctl.dev/restart-attempt": label} if label else {}}
    if is_deleted:
        metadata |= {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 30}
    pod = make_pod(job, Replica("master", 0), state=RUNNING, metadata=metadata)
    assert job_restarts.may_restart(job, observe(job, Children([pod]), NOW)) is is_cleared


@pytest.mark.parametrize(
    ("label", "is_deleted", "is_cleared"),
    [
        pytest.param("0", True, True, id="of the last attempt"),
        pytest.param("0", False, False, id="not deleted"),
        pytest.param("", True, False, id="without a label"),
        pytest.param("9", True, False, id="label of a later attempt"),
    ],
)
def test_no_job_of_a_launcher_stays_that_would_count_as_one_of_the_next_attempt(
    label: str, is_deleted: bool, is_cleared: bool
) -> None:
    policy = {"failurePolicy": {"restartStrategy": "Recreate"}}
    job = make_job(v2beta1.mpi_job(policy=policy))
    job = attrs.evolve(job, status=JobStatus(phase=JobPhase.RESTARTING, job_restarts=1))
    metadata: dict[str, Any] = {"labels": {**OURS, **({RESTART_ATTEMPT: label} if label else {})}}
    if is_deleted:
        metadata |= {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}
    children = Children(launcher_jobs=[batch_job(metadata=metadata)])
    assert job_restarts.may_restart(job, observe(job, children, NOW)) is is_cleared
