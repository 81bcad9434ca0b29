"""Commands that tests run, and a job for them whose programs are given."""

import textwrap
from collections.abc import Callable
from typing import Any

import attrs

from tests.builders import mxjob


@attrs.frozen
class Finished:
    """The result of a command."""

    code: int
    out: str
    err: str


Dlctl = Callable[..., Finished]
Written = Callable[..., str]


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
