"""The condition messages and events of the kinds of Kubeflow, as training-operator words them."""

from typing import Any

import attrs
import pytest

from dlctl.api.status.job_status import Failure
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.completion import Completion
from tests.builders import NOW, make_job, training_job

_PREFIXES = {"XGBoostJob": "xgb", "PyTorchJob": "pytorch"}
WORKER = Failure(replica="worker-0", pod="p", reason="Error", message="exit code 1", time=NOW)


@pytest.mark.parametrize(
    ("kind", "counts", "message"),
    [
        ("TFJob", {"Worker": 2}, "TFJob ml/linear has failed"),
        ("PyTorchJob", {"Master": 1, "Worker": 2}, "PyTorchJob linear is failed"),
        ("PyTorchJob", {"Worker": 2}, "PyTorchJob linear is failed"),
        ("XGBoostJob", {"Master": 1, "Worker": 2}, "XGBoostJob linear is failed"),
        ("JAXJob", {"Worker": 2}, "JAXJob linear is failed"),
        ("MPIJob", {"Launcher": 1, "Worker": 2}, "MPIJob linear is failed"),
        ("MXJob", {"Scheduler": 1, "Worker": 2}, "mxjob linear is failed"),
    ],
)
def test_failure_message_is_that_of_training_operator(
    kind: str, counts: dict[str, int], message: str
) -> None:
    job = make_job(training_job(kind, **counts))
    told = f"{message} because 2 Worker replica(s) failed."
    assert job.messages.failed(WORKER, 2) == told


def test_failure_without_replica_keeps_its_message() -> None:
    job = make_job(training_job("TFJob", Worker=1))
    failure = attrs.evolve(WORKER, replica="", message="Job linear has failed because of time")
    assert job.messages.failed(failure, 1) == failure.message
    assert job.messages.failed_event_type(failure) == "Normal"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("TFJob", "SuccessfulDeleteJob"), ("JAXJob", "SuccessfulDeletePod")],
)
def test_deletion_has_the_reason_of_the_kind(kind: str, reason: str) -> None:
    job = make_job(training_job(kind, Worker=1))
    assert job.messages.ttl_deletion_reason() == reason


def ended_unseen(
    kind: str, failure: Failure | None, policy: str = "Never", **run_policy: Any
) -> list[tuple[str, bool, str, str]]:
    """Return the conditions of a job that is created, and then seen only when it has ended."""
    wire = training_job(kind, Master=1, Worker=1)
    wire["spec"]["runPolicy"] = run_policy
    for spec in wire["spec"][f"{_PREFIXES[kind]}ReplicaSpecs"].values():
        spec["restartPolicy"] = policy
    job = make_job(wire)
    created, _ = status_transitions.running_status(job, Observed(()), {}, NOW)
    ended, _ = status_transitions.terminal_status(job, created, Completion(failure), NOW)
    return [(c.type, c.status, c.reason, c.message) for c in ended.conditions]


@pytest.mark.parametrize(
    ("failure", "end"),
    [
        (None, "Succeeded"),
        (attrs.evolve(WORKER, replica="master-0"), "Failed"),
        (WORKER, "Failed"),
    ],
)
def test_xgboostjob_that_ended_unseen_has_a_false_running_condition(
    failure: Failure | None, end: str
) -> None:
    created, running, ended = ended_unseen("XGBoostJob", failure)
    assert (created[0], ended[:2]) == ("Created", (end, True))
    assert running == ("Running", False, "XGBoostJobRunning", "XGBoostJob linear is running.")


@pytest.mark.parametrize(
    ("kind", "failure", "options"),
    [
        pytest.param("XGBoostJob", attrs.evolve(WORKER, replica=""), {}, id="job failed"),
        pytest.param("XGBoostJob", WORKER, {"policy": "ExitCode"}, id="failed by an exit code"),
        pytest.param("XGBoostJob", WORKER, {"backoffLimit": 0}, id="failed by the limit"),
        pytest.param("PyTorchJob", None, {}, id="another kind"),
        pytest.param("PyTorchJob", WORKER, {}, id="another kind failed"),
    ],
)
def test_other_jobs_that_ended_unseen_have_no_running_condition(
    kind: str, failure: Failure | None, options: dict[str, Any]
) -> None:
    assert [type_ for type_, *_ in ended_unseen(kind, failure, **options)] == [
        "Created",
        "Failed" if failure else "Succeeded",
    ]
