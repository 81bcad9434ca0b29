"""The next status of a job, from its last one and the observed replicas."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import Failure, JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF, record_restarts
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.status import invalid_status, status_transitions
from dlctl.reconcilers.status.completion import Completion
from tests.builders import (
    NOW,
    RUNNING,
    bare_job,
    exited,
    make_job,
    make_pod,
    observed_of,
    training_job,
)
from tests.dialects.et_operator.manifests import elastic_job

LATER = NOW + datetime.timedelta(minutes=1)
SCHEDULER, WORKER = Replica("scheduler", 0), Replica("worker", 0)
FAILURE = Failure("worker-0", "pod-of-worker-0", "Error", "exit code 1", NOW, 1)


def pod(job: Job, replica: Replica, **kwargs: Any) -> Pod:
    return make_pod(job, replica, **kwargs)


def running_status(
    job: Job, *pods: Pod, now: datetime.datetime = NOW
) -> tuple[JobStatus, tuple[EventNote, ...]]:
    observed = observed_of(job, *pods)
    restarts = record_restarts(job.status, observed, RESTART_BACKOFF)
    return status_transitions.running_status(job, observed, restarts, now)


def after(job: Job, *pods: Pod, now: datetime.datetime = NOW) -> Job:
    """Return the job with the status that follows from these pods."""
    return attrs.evolve(job, status=running_status(job, *pods, now=now)[0])


def condition_types(job_status: JobStatus) -> list[str]:
    return [c.type for c in job_status.conditions if c.status]


def test_new_job_is_creating() -> None:
    begun, notes = running_status(make_job())
    assert (begun.phase, begun.state) == (JobPhase.CREATING, JobState.RUNNING)
    assert (begun.start_time, begun.observed_generation) == (NOW, 1)
    assert condition_types(begun) == ["Created"]
    assert begun.conditions[0].message == "MXJob linear is created."
    assert notes == ()


def test_job_is_running_when_its_chief_is() -> None:
    job = make_job()
    worker_only = after(job, pod(job, WORKER, state=RUNNING))
    assert worker_only.status.phase is JobPhase.CREATING
    chief_too = after(worker_only, pod(job, SCHEDULER, state=RUNNING))
    assert chief_too.status.phase is JobPhase.RUNNING
    assert condition_types(chief_too.status) == ["Created", "Running"]


def test_unchanged_observation_changes_nothing() -> None:
    job = make_job()
    pods = [
        pod(job, SCHEDULER, state=RUNNING),
        pod(job, WORKER, phase="Failed", state=exited(137)),
    ]
    once = after(job, *pods)
    again, notes = running_status(once, *pods, now=LATER)
    assert again == once.status
    assert notes == ()


def test_replica_statuses_count_the_replicas_of_each_type() -> None:
    job = make_job(servers=1, workers=3)
    seen = after(
        job,
        pod(job, SCHEDULER, state=RUNNING),
        pod(job, WORKER, state=exited(0)),
        pod(job, Replica("worker", 1), phase="Pending"),
    )
    by_type = {r.type: r for r in seen.status.replica_statuses}
    assert by_type["scheduler"].count_by_state == {JobState.RUNNING: 1}
    assert by_type["server"].count_by_state == {JobState.UNKNOWN: 1}
    assert by_type["worker"].count_by_state == {JobState.SUCCEEDED: 1, JobState.UNKNOWN: 2}
    assert by_type["worker"].completed_indexes == {0}


@pytest.mark.parametrize(
    ("states", "common"),
    [
        pytest.param([exited(0), exited(1)], JobState.FAILED, id="any failed"),
        pytest.param([exited(0), RUNNING], JobState.RUNNING, id="any running"),
        pytest.param([exited(0), exited(0)], JobState.SUCCEEDED, id="all succeeded"),
        pytest.param([exited(0), {}], JobState.UNKNOWN, id="some unknown"),
    ],
)
def test_common_state_of_a_type_is_derived_as_by_mx_operator(
    states: list[dict[str, Any]], common: JobState
) -> None:
    job = make_job(workers=2)
    pods = [pod(job, Replica("worker", i), state=state) for i, state in enumerate(states)]
    workers = after(job, *pods).status.replica_statuses[2]
    assert workers.state is common


def test_worker_that_exited_0_is_completed_even_without_its_pod() -> None:
    job = make_job()
    done = after(job, pod(job, WORKER, state=exited(0)))
    assert done.status.completed_indexes("worker") == {0}
    assert after(done).status.completed_indexes("worker") == {0}


def test_worker_that_exited_0_is_a_new_one_after_the_job_was_scaled_down() -> None:
    job = make_job(workers=3)
    pods = [pod(job, Replica("worker", index), state=exited(0)) for index in (0, 2)]
    done = after(job, *pods)
    smaller = after(attrs.evolve(make_job(workers=2), status=done.status))
    assert smaller.status.completed_indexes("worker") == {0}


def test_failed_replica_makes_the_job_restarting_with_one_event() -> None:
    job = make_job()
    lost = pod(job, WORKER, phase="Failed", state=exited(137))
    seen, notes = running_status(job, pod(job, SCHEDULER, state=RUNNING), lost)
    assert condition_types(seen) == ["Created", "Restarting"]
    (note,) = notes
    assert (note.type, note.reason) == ("Warning", "MXJobRestarting")
    assert note.message.startswith("restarting worker-0: Error, exit code 137 (killed")
    _, notes = running_status(
        attrs.evolve(job, status=seen), pod(job, SCHEDULER, state=RUNNING), lost
    )
    assert notes == ()


def test_restart_by_the_kubelet_is_reported() -> None:
    job = make_job()
    crashing = pod(job, WORKER, state={"waiting": {}}, last_state=exited(137))
    assert condition_types(after(job, crashing).status) == ["Created", "Restarting"]


def test_job_is_running_again_once_the_failed_replica_is() -> None:
    job = make_job()
    chief = pod(job, SCHEDULER, state=RUNNING)
    lost = after(job, chief, pod(job, WORKER, phase="Failed", state=exited(137)))
    again = after(lost, chief, pod(job, WORKER, state=RUNNING))
    assert condition_types(again.status) == ["Created", "Running"]


def running_before(job: Job) -> Job:
    return after(job, pod(job, SCHEDULER, state=RUNNING), pod(job, WORKER, state=RUNNING))


@pytest.mark.parametrize(
    "chief",
    [
        pytest.param(None, id="gone"),
        pytest.param({"state": RUNNING, "metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}),
        pytest.param({"phase": "Pending"}, id="recreated"),
    ],
)
def test_job_whose_deciding_pod_is_gone_is_not_running(chief: dict[str, Any] | None) -> None:
    ran = running_before(make_job())
    pods = [pod(ran, WORKER, state=RUNNING)]
    pods += [pod(ran, SCHEDULER, **chief)] if chief else []
    gone = after(ran, *pods, now=LATER)
    assert condition_types(gone.status) == ["Created", "Restarting"]
    condition = gone.status.conditions[-1]
    assert (condition.reason, condition.last_transition_time) == ("MXJobRestarting", LATER)
    assert condition.message == "waiting for the pods of scheduler-0, which ran and are gone"
    assert gone.status.phase is JobPhase.RUNNING

    # The progress of its new pod causes no write.
    for phase in ("Pending", "Running"):
        coming = [pod(gone, SCHEDULER, phase=phase), *pods[:1]]
        assert running_status(gone, *coming)[0].conditions == gone.status.conditions

    assert condition_types(after(gone, pod(gone, SCHEDULER, state=RUNNING)).status) == [
        "Created",
        "Running",
    ]


def test_job_stays_running_while_its_deciding_pod_runs() -> None:
    ran = running_before(make_job())
    assert condition_types(running_status(ran, pod(ran, SCHEDULER, state=RUNNING))[0]) == [
        "Created",
        "Running",
    ]


def test_job_stays_running_while_the_kubelet_restarts_its_container() -> None:
    wire = training_job("TFJob", Chief=1, Worker=1)
    chief = Replica("chief", 0)
    ran = after(make_job(wire), pod(make_job(wire), chief, state=RUNNING))
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    between = pod(ran, chief, state=waiting, last_state=exited(1), restart_policy="Always")
    assert condition_types(running_status(ran, between)[0]) == ["Created", "Running"]
    unreported = pod(ran, chief, state=None)
    assert condition_types(running_status(ran, unreported)[0]) == ["Created", "Running"]


def test_job_stays_running_with_one_of_many_deciding_pods() -> None:
    wire = training_job("PyTorchJob", Master=1, Worker=2)
    del wire["spec"]["pytorchReplicaSpecs"]["Master"]
    job = make_job(wire)
    workers = [Replica("worker", index) for index in range(2)]
    ran = after(job, *(pod(job, worker, state=RUNNING) for worker in workers))
    one_left = [
        pod(ran, worker, state=RUNNING) for worker in job.success_policy.running_replicas[:1]
    ]
    assert condition_types(running_status(ran, *one_left)[0]) == ["Created", "Running"]
    none_left = [
        pod(ran, worker, state=RUNNING)
        for worker in workers
        if worker not in job.success_policy.running_replicas
    ]
    assert condition_types(running_status(ran, *none_left)[0]) == ["Created", "Restarting"]


def test_many_failed_replicas_are_summarized() -> None:
    job = make_job(workers=5)
    pods = [
        pod(job, Replica("worker", index), phase="Failed", reason="Evicted") for index in range(5)
    ]
    (note,) = running_status(job, *pods)[1]
    assert note.message.count("worker-") == 3
    assert note.message.endswith("; and 2 more")


def terminal_status(completion: Completion) -> tuple[JobStatus, EventNote]:
    job = make_job()
    job = after(job, pod(job, SCHEDULER, state=RUNNING))
    waiting = Condition.at(NOW, conditions.WAITING, "NameTaken", "b")
    waits = conditions.with_condition(job.status.conditions, waiting)
    job = attrs.evolve(job, status=attrs.evolve(job.status, conditions=waits))
    return status_transitions.terminal_status(job, job.status, completion, LATER)


def test_terminal_status_of_a_successful_job() -> None:
    ended, note = terminal_status(Completion())
    assert (ended.phase, ended.state, ended.reason) == (JobPhase.CLEAN_UP, JobState.SUCCEEDED, "")
    assert (ended.completion_time, ended.failure) == (LATER, None)
    assert condition_types(ended) == ["Created", "Succeeded"]
    assert (note.type, note.reason) == ("Normal", "MXJobSucceeded")


def test_terminal_status_of_a_failed_job_names_the_cause() -> None:
    ended, note = terminal_status(Completion(FAILURE))
    message = "worker-0 (pod pod-of-worker-0) failed: exit code 1"
    assert (ended.state, ended.reason, ended.failure) == (JobState.FAILED, message, FAILURE)
    assert condition_types(ended) == ["Created", "Failed"]
    assert note == EventNote("Warning", "MXJobFailed", message)


def test_invalid_job_fails_permanently_with_the_reason() -> None:
    plan = invalid_status.invalid_plan(make_job(), "spec: is wrong", NOW)
    failed = plan.status
    assert (failed.phase, failed.state) == (JobPhase.FAILED, JobState.FAILED)
    assert (failed.reason, failed.observed_generation) == ("invalid job spec: spec: is wrong", 1)
    assert failed.completion_time == NOW
    assert condition_types(failed) == ["Failed"]
    assert plan == Plan(failed, notes=(EventNote("Warning", "MXJobInvalid", "spec: is wrong"),))


def test_undecodable_type_keeps_its_completed_indexes() -> None:
    job = make_job()
    worker = ReplicaStatus("worker", JobState.RUNNING, {}, frozenset({0}))
    before = attrs.evolve(job.status, phase=JobPhase.RUNNING, replica_statuses=(worker,))
    part = attrs.evolve(
        job,
        status=before,
        replica_specs=job.replica_specs[:1],
        is_partial=True,
        invalid_reason="no",
    )
    assert after(part).status.completed_indexes("worker") == {0}


def test_status_without_observed_replicas_is_unknown() -> None:
    job = make_job()
    seen, _ = status_transitions.running_status(job, Observed(()), {}, NOW)
    assert [r.state for r in seen.replica_statuses] == [JobState.UNKNOWN] * 3


@pytest.mark.parametrize(
    ("job", "counts"),
    [
        pytest.param(
            make_job(training_job("TFJob", Worker=2)), {JobState.SUCCEEDED: 2}, id="kubeflow"
        ),
        pytest.param(
            make_job(workers=2), {JobState.RUNNING: 1, JobState.SUCCEEDED: 1}, id="list form"
        ),
        pytest.param(make_job(bare_job()), {JobState.RUNNING: 1, JobState.SUCCEEDED: 1}, id="bare"),
        pytest.param(
            make_job(elastic_job()), {JobState.RUNNING: 1, JobState.SUCCEEDED: 1}, id="elastic"
        ),
    ],
)
def test_replicas_that_run_when_the_job_succeeds_count_as_succeeded_for_kubeflow_only(
    job: Job, counts: dict[JobState, int]
) -> None:
    observed = {JobState.RUNNING: 1, JobState.SUCCEEDED: 1}
    running = ReplicaStatus("worker", JobState.RUNNING, observed)
    before = attrs.evolve(job.status, replica_statuses=(running,))

    ended, _ = status_transitions.terminal_status(job, before, Completion(), NOW)

    (worker,) = ended.replica_statuses
    assert worker.count_by_state == counts


@pytest.mark.parametrize(
    ("replicas", "has_run"),
    [
        pytest.param(ReplicaStatus("launcher", JobState.RUNNING, {}), False, id="none"),
        pytest.param(
            ReplicaStatus("launcher", JobState.RUNNING, {JobState.RUNNING: 1}), True, id="running"
        ),
        pytest.param(
            ReplicaStatus("launcher", JobState.RUNNING, {}, frozenset({0})), True, id="completed"
        ),
        pytest.param(
            ReplicaStatus("worker", JobState.RUNNING, {JobState.RUNNING: 2}), False, id="workers"
        ),
    ],
)
def test_job_has_run_if_its_status_says_so_though_its_pods_are_gone(
    replicas: ReplicaStatus, has_run: bool
) -> None:
    job = make_job(elastic_job())
    status = JobStatus(JobPhase.CREATING, replica_statuses=(replicas,))
    assert status_transitions.has_run(job, status, Observed(())) is has_run
