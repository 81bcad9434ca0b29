import attrs
import yaml

from dlctl.api.meta import ObjectKey
from dlctl.api.status import Failure, JobPhase, JobState
from dlctl.cli.outcome import failure_lines, status_yaml
from dlctl.cli.progress import JobProgress, ReplicaProgress
from tests.builders import NOW

JOB = JobProgress(
    "mxjob",
    ObjectKey("ml", "linear"),
    phase=JobPhase.DONE,
    state=JobState.FAILED,
    replicas=(
        ReplicaProgress("worker-0", "worker", pod="linear-worker-x-0", phase="Running"),
        ReplicaProgress("worker-1", "worker", pod="linear-worker-x-1", phase="Failed"),
    ),
)
FAILURE = Failure("worker-1", "linear-worker-x-1", "Error", "exit code 1 (general error)", NOW, 1)
LOGS = {
    ("mxjob ml/linear", "worker-0"): ["epoch 1"],
    ("mxjob ml/linear", "worker-1"): ["Traceback", "KeyError: 'x'"],
}


def test_success_has_no_cause() -> None:
    assert list(failure_lines(attrs.evolve(JOB, state=JobState.SUCCEEDED), LOGS)) == []


def test_cause_of_a_failure_is_the_first_one_with_its_replicas_log() -> None:
    assert list(failure_lines(attrs.evolve(JOB, failure=FAILURE), LOGS)) == [
        "mxjob ml/linear failed: worker-1 (pod linear-worker-x-1): exit code 1 (general error)",
        "last lines of worker-1:",
        "  | Traceback",
        "  | KeyError: 'x'",
    ]


def test_cause_of_an_invalid_job_is_the_field_and_the_fix() -> None:
    invalid = attrs.evolve(JOB, phase=JobPhase.FAILED, reason="spec.x: is missing")
    assert list(failure_lines(invalid, {})) == ["mxjob ml/linear failed: spec.x: is missing"]


def test_unfinished_job_shows_the_state_of_each_replica() -> None:
    running = attrs.evolve(JOB, phase=JobPhase.RUNNING, notice="restarting worker-1")
    assert list(failure_lines(running, LOGS)) == [
        "mxjob ml/linear has not finished: it is Running",
        "  restarting worker-1",
        "  worker-0 (pod linear-worker-x-0): Running",
        "  worker-1 (pod linear-worker-x-1): Failed",
        "last lines of worker-0:",
        "  | epoch 1",
    ]


def test_deleted_job_is_reported_as_such() -> None:
    assert list(failure_lines(attrs.evolve(JOB, deleted=True), {})) == [
        "mxjob ml/linear was deleted before it finished"
    ]


def test_status_is_printed_as_yaml_with_its_keys_in_order() -> None:
    text = status_yaml({"status": {"state": "Succeeded", "phase": "Done"}})
    assert text == "status:\n  phase: Done\n  state: Succeeded\n"
    assert yaml.safe_load(status_yaml({})) == {"status": {}}
