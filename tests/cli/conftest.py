"""Manifests in files, and the program run in this process."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from dlctl.cli import program
from tests.builders import mxjob


@attrs.frozen
class Finished:
    """The result of a command."""

    code: int
    out: str
    err: str


Dlctl = Callable[..., Finished]
Written = Callable[..., str]


@pytest.fixture
def dlctl(capsys: pytest.CaptureFixture[str]) -> Dlctl:
    """Run one command line in this process."""

    def run(*arguments: str) -> Finished:
        try:
            code = program.run(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return run


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write manifests to a file and return its name."""

    def write(*manifests: Any) -> str:
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        return str(path)

    return write


def script_job(worker: str, *, scheduler: str = "import time; time.sleep(60)") -> dict[str, Any]:
    """Return a job of two workers whose worker 0 decides; the programs are Python."""
    chief = {"chief": {"replicaName": "WORKER", "replicaIndex": 0}}
    job = mxjob(servers=0, workers=2, terminationPolicy=chief)
    job["metadata"] = {"name": "linear"}
    for spec in job["spec"]["replicaSpecs"]:
        script = worker if spec["mxReplicaType"] == "WORKER" else scheduler
        container = {
            "name": "mxnet",
            "image": "python",
            "command": ["python3", "-c", textwrap.dedent(script)],
        }
        spec["template"] = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return job
