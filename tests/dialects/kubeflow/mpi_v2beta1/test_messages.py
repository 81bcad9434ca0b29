"""mpi-operator's texts in the conditions and events of MPIJob v2beta1, which Kueue's users read."""

import attrs
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.status import conditions
from dlctl.api.status.job_status import Failure, JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.dialects.kubeflow.mpi_v2beta1.kind import MPI_V2BETA1
from dlctl.dialects.status import replica_map_status
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.completion import Completion
from dlctl.reconcilers.status.invalid_status import invalid_plan
from tests.builders import NOW, make_job
from tests.mpi_v2beta1 import mpi_job

Shown = list[tuple[str, bool, str, str]]


def shown(status: JobStatus) -> Shown:
    return [(c.type, c.status, c.reason, c.message) for c in status.conditions]


def running(job: Job) -> Observed:
    """Return a job of which everything runs."""
    return Observed(tuple(ObservedReplica(r, ReplicaState.RUNNING) for r in job.replicas))


def with_status(job: Job, status: JobStatus) -> Job:
    return attrs.evolve(job, status=status)


def test_new_job_is_created_and_runs() -> None:
    job = make_job(mpi_job())
    status, notes = status_transitions.running_status(job, running(job), {}, NOW)
    assert shown(status) == [
        ("Created", True, "MPIJobCreated", "MPIJob ml/pi is created."),
        ("Running", True, "MPIJobRunning", "MPIJob ml/pi is running."),
    ]
    assert notes == (
        EventNote("Normal", "MPIJobCreated", "MPIJob ml/pi is created."),
        EventNote("Normal", "MPIJobRunning", "MPIJob ml/pi is running"),
    )


def test_running_job_has_no_further_event() -> None:
    job = make_job(mpi_job())
    status, _ = status_transitions.running_status(job, running(job), {}, NOW)
    again, notes = status_transitions.running_status(
        with_status(job, status), running(job), {}, NOW
    )
    assert (again.conditions, notes) == (status.conditions, ())


def test_job_is_suspended_before_it_runs_and_resumed() -> None:
    job = make_job(mpi_job(policy={"suspend": True}))
    status, notes = status_transitions.suspended_status(job, Observed(()), NOW)
    assert shown(status)[1:] == [
        ("Running", False, "MPIJobSuspended", "MPIJob ml/pi is suspended."),
        ("Suspended", True, "MPIJobSuspended", "MPIJob suspended"),
    ]
    assert [note.reason for note in notes] == ["MPIJobCreated", "MPIJobSuspended"]
    assert status.start_time is None
    counts = replica_map_status.write_replica_statuses(status, MPI_V2BETA1)
    assert counts == {"Launcher": {}, "Worker": {}}

    resumed, notes = status_transitions.running_status(
        with_status(job, status), Observed(()), {}, NOW
    )
    assert shown(resumed)[1:] == [
        ("Running", False, "MPIJobSuspended", "MPIJob ml/pi is suspended."),
        ("Suspended", False, "MPIJobResumed", "MPIJob resumed"),
    ]
    assert notes == (EventNote("Normal", "MPIJobResumed", "MPIJob resumed"),)
    assert resumed.start_time == NOW


def test_running_job_that_ends_does_not_run_any_more() -> None:
    job = make_job(mpi_job())
    status, _ = status_transitions.running_status(job, running(job), {}, NOW)
    ended, note = status_transitions.terminal_status(job, status, Completion(), NOW)
    assert shown(ended)[1:] == [
        ("Running", False, "MPIJobRunning", "MPIJob ml/pi is running."),
        ("Succeeded", True, "MPIJobSucceeded", "MPIJob ml/pi successfully completed."),
    ]
    assert note == EventNote("Normal", "MPIJobSucceeded", "MPIJob ml/pi successfully completed.")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param("BackoffLimitExceeded/OOMKilled", "BackoffLimitExceeded/OOMKilled", id="job"),
        pytest.param("", "MPIJobFailed", id="no reason"),
    ],
)
def test_job_that_never_ran_fails_with_the_reason_of_its_launcher(
    reason: str, expected: str
) -> None:
    job = make_job(mpi_job())
    failure = Failure("", "", reason, "Job has reached the specified backoff limit", NOW)
    ended, note = status_transitions.terminal_status(job, job.status, Completion(failure), NOW)
    never = "MPIJob ml/pi is finished but Running condition was never set."
    assert shown(ended) == [
        ("Running", False, "MPIJobRunning", never),
        ("Failed", True, expected, failure.message),
    ]
    assert note == EventNote("Warning", expected, failure.message)


@pytest.mark.parametrize("failure", [None, Failure("", "", "DeadlineExceeded", "late", NOW)])
def test_workers_are_not_counted_once_the_launcher_has_ended(failure: Failure | None) -> None:
    job = make_job(mpi_job())
    counted = ReplicaStatus("worker", JobState.UNKNOWN, {JobState.RUNNING: 2})
    status = attrs.evolve(job.status, replica_statuses=(counted,))
    ended, _ = status_transitions.terminal_status(job, status, Completion(failure), NOW)
    assert [dict(each.count_by_state) for each in ended.replica_statuses] == [{}]


def test_invalid_job_fails_with_mpi_operators_reason() -> None:
    job = make_job(mpi_job())
    plan = invalid_plan(job, "spec.slotsPerWorker: must be an integer", NOW)
    message = "Found validation errors: spec.slotsPerWorker: must be an integer"
    assert plan.notes == (EventNote("Warning", "ValidationError", message),)
    assert plan.status.phase is JobPhase.FAILED
    assert shown(plan.status) == [("Failed", True, "ValidationError", message)]


def test_events_come_from_mpi_operators_component() -> None:
    messages = make_job(mpi_job()).messages
    assert messages.event_source == "mpi-job-controller"
    assert messages.name_conflict_reason == "ErrResourceExists"


def test_status_of_mpi_operator_is_continued() -> None:
    condition = {"type": "Running", "status": "True", "reason": "MPIJobRunning"}
    wire = mpi_job()
    wire["status"] = {"conditions": [condition], "replicaStatuses": {"Launcher": {"active": 1}}}
    status = make_job(wire).status
    assert status.written_by_other_operator
    assert status.phase is JobPhase.RUNNING
    assert conditions.is_true(status.conditions, conditions.RUNNING)
