"""The conditions Running and Restarting, from the observed replicas."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import LAUNCHER_REPLICA, Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import JobState, JobStatus, ReplicaStatus
from dlctl.reconcilers.status import replica_conditions
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, observed_of, training_job
from tests.dialects.et_operator.manifests import read_job
from tests.support.cost_growth import cost_growth

LATER = NOW + datetime.timedelta(minutes=1)
SCHEDULER, WORKER = Replica("scheduler", 0), Replica("worker", 0)
JOB = make_job()
# Its users know no events about restarts in place.
KUBEFLOW_JOB = make_job(training_job("PyTorchJob", Master=1, Worker=1))
WAS_RUNNING = (
    Condition.at(NOW, conditions.RUNNING, "MXJobRunning", "MXJob ml/linear is running."),
)
IMAGE_MISSING = {"waiting": {"reason": "ImagePullBackOff", "message": "attempt 3"}}


def with_running(
    *pods: Pod, current: tuple[Condition, ...] = (), job: Job = JOB
) -> tuple[Condition, ...]:
    observed = observed_of(job, *pods)
    restarting = replica_conditions.restarting_replicas(job, observed)
    return replica_conditions.with_running(current, job, observed, restarting, LATER)


def pod(replica: Replica, **fields: Any) -> Pod:
    return make_pod(JOB, replica, **fields)


def test_running_chief_makes_the_job_running() -> None:
    assert with_running(pod(WORKER, state=RUNNING)) == ()
    message = "MXJob ml/linear is running."
    running = Condition.at(LATER, conditions.RUNNING, "MXJobRunning", message)
    assert with_running(pod(SCHEDULER, state=RUNNING)) == (running,)


def test_failed_replica_makes_a_running_job_restarting() -> None:
    failed = pod(WORKER, phase="Failed", state=exited(137))
    found = with_running(pod(SCHEDULER, state=RUNNING), failed, current=WAS_RUNNING)
    assert [(c.type, c.status, c.reason) for c in found] == [
        ("Restarting", True, "MXJobRestarting")
    ]
    assert found[0].message.startswith("restarting worker-0: Error, exit code 137")


@pytest.mark.parametrize(
    ("failed", "type_"),
    [
        pytest.param(Replica("worker", 1), "Running", id="worker"),
        pytest.param(LAUNCHER_REPLICA, "Restarting", id="launcher"),
    ],
)
def test_only_the_launcher_of_an_elastic_job_makes_it_restarting(
    failed: Replica, type_: str
) -> None:
    job = read_job(launcher={"restartPolicy": "OnFailure"}, worker={"restartPolicy": "OnFailure"})
    pods = {each: make_pod(job, each, state=RUNNING) for each in (LAUNCHER_REPLICA, WORKER)}
    pods[failed] = make_pod(job, failed, phase="Failed", state=exited(137))
    was_running = (Condition.at(NOW, conditions.RUNNING, "TrainingJobRunning", "running"),)
    (found,) = with_running(*pods.values(), current=was_running, job=job)
    assert (found.type, found.status) == (type_, True)


@pytest.mark.parametrize(
    ("job", "names"),
    [
        pytest.param(JOB, ["worker-0"], id="reported"),
        pytest.param(KUBEFLOW_JOB, [], id="not known to the users of the kind"),
    ],
)
def test_container_that_the_kubelet_restarts(job: Job, names: list[str]) -> None:
    observed = observed_of(job, make_pod(job, WORKER, state=IMAGE_MISSING, last_state=exited(137)))
    found = replica_conditions.restarting_replicas(job, observed)
    assert [str(one.replica) for one in found] == names


@pytest.mark.parametrize(
    "chief",
    [
        pytest.param(None, id="gone"),
        pytest.param(pod(SCHEDULER, phase="Pending", state={}), id="a new pod"),
        pytest.param(
            pod(SCHEDULER, state=RUNNING, metadata={"deletionTimestamp": NOW.isoformat()}),
            id="terminating",
        ),
    ],
)
def test_running_job_whose_chief_does_not_run_is_restarting(chief: Pod | None) -> None:
    found = with_running(*([chief] if chief else []), current=WAS_RUNNING)
    assert [c.type for c in found] == ["Restarting"]
    expected = "waiting for the pods of scheduler-0, which ran and are gone"
    assert found[0].message == expected


@pytest.mark.parametrize(
    ("counts", "condition"),
    [
        pytest.param({}, conditions.RUNNING, id="type that is new to the job"),
        pytest.param({JobState.RUNNING: 1}, conditions.RESTARTING, id="type that ran"),
    ],
)
def test_running_job_that_waits_for_a_master(counts: dict[JobState, int], condition: str) -> None:
    statuses = (
        ReplicaStatus("worker", JobState.UNKNOWN, {JobState.RUNNING: 1}),
        ReplicaStatus("master", JobState.UNKNOWN, counts),
    )
    job = attrs.evolve(KUBEFLOW_JOB, status=JobStatus(replica_statuses=statuses))
    worker = make_pod(job, WORKER, state=RUNNING)
    found = with_running(worker, current=WAS_RUNNING, job=job)
    assert [c.type for c in found] == [condition]


@pytest.mark.parametrize(
    ("created", "condition"),
    [
        pytest.param(NOW, conditions.RUNNING, id="has never run"),
        pytest.param(LATER, conditions.RESTARTING, id="replaces one that ran"),
    ],
)
def test_running_job_that_waits_for_its_last_pod(
    created: datetime.datetime, condition: str
) -> None:
    job = make_job(training_job("JAXJob", Worker=2))
    done = make_pod(job, WORKER, phase="Succeeded", state=exited(0))
    since = {"creationTimestamp": created.isoformat()}
    waits = make_pod(job, Replica("worker", 1), phase="Pending", state={}, metadata=since)
    found = with_running(done, waits, current=WAS_RUNNING, job=job)
    assert [c.type for c in found] == [condition]


@pytest.mark.parametrize(
    ("counts", "completed", "condition"),
    [
        pytest.param({JobState.RUNNING: 1}, (), conditions.RUNNING, id="only the one that is done"),
        pytest.param({JobState.RUNNING: 2}, (), conditions.RESTARTING, id="and one that is gone"),
        pytest.param(
            {JobState.RUNNING: 1, JobState.SUCCEEDED: 1},
            (0,),
            conditions.RESTARTING,
            id="one that is gone, after the one that is done",
        ),
    ],
)
def test_running_job_that_waits_for_workers_after_one_has_succeeded(
    counts: dict[JobState, int], completed: tuple[int, ...], condition: str
) -> None:
    job = make_job(training_job("PyTorchJob", Worker=3))
    ran = ReplicaStatus("worker", JobState.UNKNOWN, counts, frozenset(completed))
    job = attrs.evolve(job, status=JobStatus(replica_statuses=(ran,)))
    done = make_pod(job, WORKER, phase="Succeeded", state=exited(0))
    since = {"creationTimestamp": LATER.isoformat()}
    waits = make_pod(job, Replica("worker", 1), phase="Pending", state={}, metadata=since)
    found = with_running(done, waits, current=WAS_RUNNING, job=job)
    assert [c.type for c in found] == [condition]


@pytest.mark.parametrize(
    ("counts", "phase", "condition"),
    [
        pytest.param({JobState.RUNNING: 1}, "Failed", conditions.RUNNING, id="only that one"),
        pytest.param({JobState.RUNNING: 1}, "Running", conditions.RUNNING, id="before its phase"),
        pytest.param(
            {JobState.RUNNING: 1, JobState.FAILED: 1},
            "Failed",
            conditions.RESTARTING,
            id="one that is gone, after the one that has failed",
        ),
    ],
)
def test_running_job_that_waits_for_workers_after_one_has_failed(
    counts: dict[JobState, int], phase: str, condition: str
) -> None:
    wire = training_job("TFJob", Worker=3)
    wire["spec"]["enableDynamicWorker"] = True
    job = make_job(wire)
    ran = ReplicaStatus("worker", JobState.UNKNOWN, counts)
    job = attrs.evolve(job, status=JobStatus(replica_statuses=(ran,)))
    ended: Any = {"phase": phase, "state": exited(1), "restart_policy": "Never"}
    failed = make_pod(job, Replica("worker", 1), **ended)
    since = {"creationTimestamp": LATER.isoformat()}
    waits = make_pod(job, Replica("worker", 2), phase="Pending", state={}, metadata=since)
    found = with_running(failed, waits, current=WAS_RUNNING, job=job)
    assert [c.type for c in found] == [condition]


def test_running_job_stays_so_while_the_container_of_its_chief_starts_again() -> None:
    assert with_running(pod(SCHEDULER, state={}), current=WAS_RUNNING) == WAS_RUNNING
    master: Any = {"replica": Replica("master", 0), "phase": "Pending", "state": {}}
    again = make_pod(KUBEFLOW_JOB, **master, last_state=exited(1))
    assert with_running(again, current=WAS_RUNNING, job=KUBEFLOW_JOB) == WAS_RUNNING


def test_job_that_has_not_run_waits_without_a_condition() -> None:
    assert with_running(pod(SCHEDULER, phase="Pending", state={})) == ()


def test_time_for_replicas_that_are_missing_grows_with_their_number() -> None:
    jobs = {size: make_job(training_job("JAXJob", Worker=size)) for size in (500, 2000)}
    cases = {size: (job, observed_of(job)) for size, job in jobs.items()}

    def look(size: int) -> None:
        job, observed = cases[size]
        found = replica_conditions.with_running(WAS_RUNNING, job, observed, (), LATER)
        assert [condition.type for condition in found] == ["Restarting"]

    assert cost_growth(look, small=500) < 8


def test_types_are_counted_in_order_of_their_names() -> None:
    replicas = observed_of(make_job(workers=2)).replicas
    counts = replica_conditions.type_counts(reversed(replicas))
    assert list(counts.items()) == [("scheduler", 1), ("server", 1), ("worker", 2)]
