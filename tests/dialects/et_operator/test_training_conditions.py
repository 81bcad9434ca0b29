"""Reasons and messages of conditions, as et-operator's users and scripts know them."""

import pytest

from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import Failure
from dlctl.dialects.et_operator import training_conditions
from tests.builders import NOW
from tests.dialects.et_operator.manifests import read_job, read_scaler, scale_in, scale_out

JOB = read_job()
IN, OUT = read_scaler(scale_in()), read_scaler(scale_out())


@pytest.mark.parametrize(
    ("condition", "type_", "reason", "message"),
    [
        (
            training_conditions.workers_created(JOB, NOW),
            "WorkersCreated",
            "",
            "create trainingjob(ml/linear) workers",
        ),
        (
            training_conditions.workers_ready(JOB, 2, NOW),
            "WorkersReady",
            "",
            "trainingjob(ml/linear) all workers (2) are running",
        ),
        (
            training_conditions.launcher_created(JOB, NOW),
            "LauncherCreated",
            "",
            "create trainingjob(ml/linear) launcher",
        ),
        (
            training_conditions.scaling(JOB, IN.full_name, NOW),
            "Scaling",
            "ScalingStart",
            "trainingjob(ml/linear) execute ScaleIn:ml/change",
        ),
        (
            training_conditions.scaling(JOB, "", NOW),
            "Scaling",
            "ScalingStart",
            "trainingjob(ml/linear) execute a change that its spec or its nodes ask for",
        ),
        (
            training_conditions.scaling_finished(JOB, IN.full_name, NOW),
            "ScaleSucceeded",
            "ScalingInSucceeded",
            "ScaleIn:ml/change has Succeeded",
        ),
        (
            training_conditions.scaling_finished(JOB, "", NOW, ScaleFailure("")),
            "ScaleFailed",
            "ScalingFailed",
            "trainingjob(ml/linear): a change that its spec or its nodes ask for has Failed",
        ),
        (
            training_conditions.scaler_created(OUT, NOW),
            "Created",
            "",
            "Scaling job ScaleOut:ml/change created, match the training job ml/linear",
        ),
        (
            training_conditions.scaler_scaling(OUT, NOW),
            "Scaling",
            "ScalingStart",
            "trainingjob(ml/linear) execute ScaleOut:ml/change",
        ),
        (
            training_conditions.script_executed(IN, NOW),
            "ScriptExecuted",
            "",
            "trainingjob(ml/linear): execute script on launcher for ScaleIn:ml/change",
        ),
        (
            training_conditions.scaler_finished(OUT, NOW),
            "ScaleSucceeded",
            "ScalingOutSucceeded",
            "ScaleOut:ml/change has Succeeded",
        ),
        (
            training_conditions.scaler_finished(IN, NOW, ScaleFailure("its job has ended")),
            "ScaleFailed",
            "ScalingInFailed",
            "ScaleIn:ml/change has Failed: its job has ended",
        ),
    ],
)
def test_condition_has_et_operators_reason_and_message(
    condition: Condition, type_: str, reason: str, message: str
) -> None:
    assert (condition.type, condition.reason, condition.message) == (type_, reason, message)
    assert condition.status
    assert condition.last_transition_time == condition.last_update_time == NOW


@pytest.mark.parametrize(
    ("scaler", "step", "message"),
    [
        pytest.param(
            IN,
            FailedStep.SELECT_WORKERS,
            "ScaleIn:ml/change get to delete workers name failed, error: why",
            id="selection",
        ),
        pytest.param(
            OUT, FailedStep.SELECT_WORKERS, "ScaleOut:ml/change has Failed: why", id="too many"
        ),
        pytest.param(
            OUT,
            FailedStep.AWAIT_WORKERS,
            "scaleout job ScaleOut:ml/change execution timeout: why",
            id="timeout",
        ),
        pytest.param(
            IN,
            FailedStep.RUN_SCRIPT,
            "ScaleIn:ml/change execute script failed, error: why",
            id="script",
        ),
    ],
)
def test_scaler_and_job_name_the_step_that_failed(
    scaler: Scaler, step: FailedStep, message: str
) -> None:
    failure = ScaleFailure("why", step)
    of_scaler = training_conditions.scaler_finished(scaler, NOW, failure)
    of_job = training_conditions.scaling_finished(JOB, scaler.full_name, NOW, failure)
    assert of_scaler.message == message
    assert of_job == of_scaler


def test_messages_are_those_of_et_operator() -> None:
    told = JOB.messages
    failure = Failure("launcher-0", "linear-launcher", "Error", "exit code 1", NOW, 1)
    assert told.running() == "job(ml/linear) is running."
    assert told.succeeded() == "job(ml/linear) successfully completed."
    assert told.reason("Running") == "TrainingJobRunning"
    assert told.failed(failure, 1) == (
        "job(ml/linear) has failed: launcher-0 (pod linear-launcher) failed: exit code 1"
    )
    assert told.event_source == "trainingjob"


def test_job_that_runs_is_also_reported_as_an_event() -> None:
    messages = [JOB.messages.phase_event_message(type_) for type_ in ("Created", "Running")]
    assert messages == ["", "job(ml/linear) is running."]


@pytest.mark.parametrize(
    ("replica", "reason", "pod_reason", "said"),
    [
        pytest.param("launcher-0", "Error", "", "TrainingJobFailed", id="exit code"),
        pytest.param("launcher-0", "OOMKilled", "", "TrainingJobFailed", id="container reason"),
        pytest.param("launcher-0", "Evicted", "Evicted", "TrainingJobEvicted", id="evicted"),
        pytest.param("launcher-0", "NodeLost", "NodeLost", "NodeLost", id="pod reason"),
        # The kubelet kills the program at the deadline, which the container reports as an error.
        pytest.param(
            "launcher-0", "Error", "DeadlineExceeded", "DeadlineExceeded", id="reason of both"
        ),
        pytest.param("worker-1", "NodeLost", "NodeLost", "TrainingJobFailed", id="worker"),
    ],
)
def test_failure_has_the_reason_of_the_launchers_pod(
    replica: str, reason: str, pod_reason: str, said: str
) -> None:
    failure = Failure(replica, f"linear-{replica}", reason, "", NOW, pod_reason=pod_reason)
    assert JOB.messages.failed_reason(failure) == said


@pytest.mark.parametrize(
    ("replica", "pod_reason", "said"),
    [
        pytest.param("launcher-0", "", "TrainingJobFailed", id="exit code"),
        pytest.param("launcher-0", "Evicted", "Evicted", id="evicted"),
        pytest.param("worker-1", "NodeLost", "TrainingJobFailed", id="worker"),
    ],
)
def test_event_of_a_failure_has_the_reason_of_the_launchers_pod(
    replica: str, pod_reason: str, said: str
) -> None:
    failure = Failure(replica, f"linear-{replica}", "Error", "", NOW, pod_reason=pod_reason)
    assert JOB.messages.failed_event_reason(failure) == said


def test_job_waiting_for_resources_has_its_suspension_reason_and_message() -> None:
    waiting = read_job(annotations={"job-supervisor.kube-ai.io/job-suspended": "true"})
    assert waiting.messages.suspended_reason() == "WaitingResourceTimeout"
    assert waiting.messages.suspended() == "TrainingJob linear is waiting resource timeout."
    assert JOB.messages.suspended_reason() == "TrainingJobSuspended"
    assert JOB.messages.suspended() == "TrainingJob linear is suspended."
