"""Whole runs that fail for reasons which no program has written: the end of the run names them."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import training_job
from tests.support.command_line import Dlctl, Written, script_job


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """Return where a failed run keeps its logs, also the controller's."""
    return str(tmp_path / "logs")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param(
            {"livenessProbe": {"exec": {"command": ["false"]}, "failureThreshold": 1}},
            "Liveness probe failed: ",
            id="liveness probe",
        ),
        pytest.param(
            {"lifecycle": {"postStart": {"exec": {"command": ["false"]}}}},
            "PostStartHook failed: ",
            id="hook",
        ),
    ],
)
def test_probe_or_hook_that_ends_a_program_is_the_cause(
    dlctl: Dlctl, written: Written, logs: str, fields: dict[str, Any], reason: str
) -> None:
    job = script_job("import time; time.sleep(60)")
    for spec in job["spec"]["replicaSpecs"]:
        pod = spec["template"]["spec"] | {"terminationGracePeriodSeconds": 1}
        spec["template"]["spec"] = pod
        pod["containers"][0] |= fields
    done = dlctl("run", written(job), "--max-restarts", "0", "--timeout", "30", "--logs", logs)
    assert done.code == 1
    assert f"  the node ended its program: {reason}" in done.err


def test_output_of_an_init_container_that_fails_again_and_again_is_shown(
    dlctl: Dlctl, written: Written, logs: str
) -> None:
    job = training_job("PyTorchJob", Master=1)
    pod = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    pod["containers"][0]["command"] = ["true"]
    command = ["sh", "-c", "echo cannot reach the bucket; exit 3"]
    pod["initContainers"] = [{"name": "fetch", "image": "x", "command": command}]
    done = dlctl("run", written(job), "--max-restarts", "1", "--timeout", "30", "--logs", logs)
    assert done.code == 1
    assert (
        "(pod linear-master-0, init container fetch) was restarted 1 time; exit code 3" in done.err
    )
    assert "last lines of master-0:\n  | cannot reach the bucket\n" in done.err
