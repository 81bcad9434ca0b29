"""The words of conditions: those that et-operator's users and their scripts know."""

import pytest

from dlctl.api.conditions import Condition
from dlctl.api.status import Failure
from dlctl.dialects.elastic import words
from tests.builders import NOW
from tests.dialects.elastic.manifests import read_job, read_scaler, scale_in, scale_out

JOB = read_job()
IN, OUT = read_scaler(scale_in()), read_scaler(scale_out())


@pytest.mark.parametrize(
    ("condition", "type_", "reason", "message"),
    [
        (
            words.workers_created(JOB, NOW),
            "WorkersCreated",
            "",
            "create trainingjob(ml/linear) workers",
        ),
        (
            words.workers_ready(JOB, 2, NOW),
            "WorkersReady",
            "",
            "trainingjob(ml/linear) all workers (2) are running",
        ),
        (
            words.launcher_created(JOB, NOW),
            "LauncherCreated",
            "",
            "create trainingjob(ml/linear) launcher",
        ),
        (
            words.scaling(JOB, IN.full_name, NOW),
            "Scaling",
            "ScalingStart",
            "trainingjob(ml/linear) execute ScaleIn:ml/change",
        ),
        (
            words.scaling(JOB, "", NOW),
            "Scaling",
            "ScalingStart",
            "trainingjob(ml/linear) execute a change that its spec or its nodes ask for",
        ),
        (
            words.scale_ended(JOB, IN.full_name, NOW, ok=True),
            "ScaleSucceeded",
            "ScalingInSucceeded",
            "ScaleIn:ml/change has Succeeded",
        ),
        (
            words.scale_ended(JOB, "", NOW, ok=False),
            "ScaleFailed",
            "ScalingFailed",
            "trainingjob(ml/linear): a change that its spec or its nodes ask for has Failed",
        ),
        (
            words.scaler_created(OUT, NOW),
            "Created",
            "",
            "Scaling job ScaleOut:ml/change created, match the training job ml/linear",
        ),
        (
            words.scaler_scaling(OUT, NOW),
            "Scaling",
            "ScalingStart",
            "trainingjob(ml/linear) execute ScaleOut:ml/change",
        ),
        (
            words.script_executed(IN, NOW),
            "ScriptExecuted",
            "",
            "trainingjob(ml/linear): execute script on launcher for ScaleIn:ml/change",
        ),
        (
            words.scaler_ended(OUT, NOW, ok=True),
            "ScaleSucceeded",
            "ScalingOutSucceeded",
            "ScaleOut:ml/change has Succeeded",
        ),
        (
            words.scaler_ended(IN, NOW, ok=False, message="no worker is called x"),
            "ScaleFailed",
            "ScalingInFailed",
            "ScaleIn:ml/change has Failed: no worker is called x",
        ),
    ],
)
def test_condition_is_said_as_et_operator_says_it(
    condition: Condition, type_: str, reason: str, message: str
) -> None:
    assert (condition.type, condition.reason, condition.message) == (type_, reason, message)
    assert condition.status
    assert condition.since == condition.updated == NOW


def test_job_is_told_as_et_operator_tells_it() -> None:
    told = JOB.reporting
    failure = Failure("launcher-0", "linear-launcher", "Error", "exit code 1", NOW, 1)
    assert told.running(JOB) == "job(ml/linear) is running."
    assert told.succeeded(JOB) == "job(ml/linear) successfully completed."
    assert told.reason(JOB, "Running") == "TrainingJobRunning"
    assert told.failed(JOB, failure, 1) == (
        "job(ml/linear) has failed: launcher-0 (pod linear-launcher) failed: exit code 1"
    )
    assert told.event_source == "trainingjob"


@pytest.mark.parametrize(
    ("reason", "said"), [("Error", "TrainingJobFailed"), ("Evicted", "TrainingJobEvicted")]
)
def test_reason_of_a_failure_tells_evictions_apart(reason: str, said: str) -> None:
    failure = Failure("launcher-0", "linear-launcher", reason, "", NOW)
    assert JOB.reporting.failed_reason(JOB, failure) == said


def test_job_that_waits_for_resources_is_suspended_for_that_reason() -> None:
    waiting = read_job(annotations={"job-supervisor.kube-ai.io/job-suspended": "true"})
    assert waiting.reporting.suspended_reason(waiting) == "WaitingResourceTimeout"
    assert JOB.reporting.suspended_reason(JOB) == "TrainingJobSuspended"
