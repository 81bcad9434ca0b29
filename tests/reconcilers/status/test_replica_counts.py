from typing import Any

import attrs
import pytest

from dlctl.api.job import Replica, replica_type
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import Failure, JobState, JobStatus, ReplicaStatus
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.completion import Completion
from dlctl.reconcilers.status.replica_counts import (
    final_replica_status,
    replica_status,
)
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, training_job
from tests.reconcilers.membership.builders import JOB as ELASTIC_JOB
from tests.reconcilers.membership.builders import LISTED, worker_pod

JOB = make_job(training_job("MPIJob", Launcher=1, Worker=2))
LAUNCHER, WORKER = Replica("launcher", 0), Replica("worker", 1)


def counts(failed: Replica | None = None) -> dict[str, dict[JobState, int]]:
    """Return the final replica counts of an MPI job by type; without a failure, of a success."""
    pods = [
        make_pod(JOB, replica, phase="Failed", state=exited(1))
        if replica == failed
        else make_pod(JOB, replica, state=RUNNING)
        for replica in JOB.replicas
    ]
    observed = observe(JOB, Children(pods), NOW)
    running = [replica_status(JOB, spec, observed) for spec in JOB.replica_specs]
    failure = failure_of(str(failed)) if failed else None
    return {r.type: dict(final_replica_status(JOB, r, failure).count_by_state) for r in running}


def failure_of(replica: str) -> Failure:
    return Failure(replica=replica, pod="p", reason="Error", message="exit code 1", time=NOW)


def test_mpi_workers_are_not_counted_once_the_launcher_has_ended() -> None:
    assert counts() == {"launcher": {JobState.SUCCEEDED: 1}, "worker": {}}
    assert counts(LAUNCHER) == {"launcher": {JobState.FAILED: 1}, "worker": {}}


def test_mpi_workers_are_counted_if_one_of_them_failed_the_job() -> None:
    workers = {JobState.RUNNING: 1, JobState.FAILED: 1}
    assert counts(WORKER) == {"launcher": {JobState.RUNNING: 1}, "worker": workers}


@pytest.mark.parametrize(
    ("replica", "reason"), [("worker-1", "MPIJobMPIJobFailed"), ("", "MPIJobFailed")]
)
def test_job_level_failure_has_the_default_reason(replica: str, reason: str) -> None:
    completion = Completion(failure_of(replica))
    ended, note = status_transitions.terminal_status(JOB, JobStatus(), completion, NOW)
    assert ended.conditions[-1].reason == reason
    assert note.reason == "MPIJobFailed"


def test_job_level_failure_has_no_failed_replica_type() -> None:
    assert replica_type(failure_of("worker-12").replica) == "worker"
    assert replica_type(attrs.evolve(failure_of("worker-12"), replica="").replica) == ""


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        pytest.param(worker_pod(1, exit_code=0), JobState.SUCCEEDED, id="exited with 0"),
        pytest.param(worker_pod(1, exit_code=1), JobState.FAILED, id="exited with 1"),
        pytest.param(
            worker_pod(1, exit_code=0, terminating=True), JobState.FAILED, id="deleted while it ran"
        ),
        pytest.param(None, JobState.FAILED, id="gone"),
    ],
)
def test_retired_worker_counts_by_how_it_ended(pod: Pod | None, state: JobState) -> None:
    job = attrs.evolve(ELASTIC_JOB, status=JobStatus(membership=LISTED.retire([1])))
    pods = [worker_pod(0), *([pod] if pod else [])]
    workers = next(spec for spec in job.replica_specs if spec.type == "worker")
    found = replica_status(job, workers, observe(job, Children(pods), NOW))
    assert found.count_by_state == {JobState.RUNNING: 1, state: 1}


def test_replica_whose_init_container_has_failed_never_counts_as_running() -> None:
    end = exited(1)
    end["terminated"]["finishedAt"] = NOW.isoformat()
    init = [{"name": "fetch", "state": end}]
    pod = make_pod(JOB, WORKER, phase="Pending", restart_policy="Never", initContainerStatuses=init)
    observed = observe(JOB, Children([pod]), NOW)
    assert observed.phase_wait_s
    assert replica_status(JOB, JOB.replica_specs[1], observed).count_by_state == {}


@pytest.mark.parametrize(
    ("indexes", "completed"),
    [
        pytest.param(None, {1}, id="removed and added again as another one"),
        pytest.param((1, 5), {1, 5}, id="member of an elastic job"),
    ],
)
def test_replica_stays_completed_while_its_index_is_that_of_a_replica(
    indexes: tuple[int, ...] | None, completed: set[int]
) -> None:
    done = ReplicaStatus("worker", JobState.SUCCEEDED, {}, frozenset({1, 5}))
    job = attrs.evolve(JOB, status=JobStatus(replica_statuses=(done,)))
    workers = attrs.evolve(job.replica_specs[1], explicit_indexes=indexes)
    found = replica_status(job, workers, observe(job, Children(), NOW))
    assert found.completed_indexes == completed


def test_mpi_restart_is_reported_with_the_count() -> None:
    message: Any = JOB.messages.restarting({"worker": 2}, "")
    assert message == "MPIJob linear is restarting because 2 Worker replica(s) failed."
