"""mpi-operator as a process beside a cluster.

One at a time: the port of its health checks is fixed.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.cluster.build import build
from e2e.cluster.programs import MPI_OPERATOR, mpi_operator_folder
from e2e.kubectl import Kubectl

NAME: Final = "mpi-operator"
UNLIMITED: Final = (
    "--threadiness=8",
    "--kube-api-qps=2000",
    "--kube-api-burst=4000",
    "--controller-queue-rate-limit=2000",
    "--controller-queue-burst=4000",
)
_NAMESPACE: Final = "default"
_STARTED: Final = "Started workers"
_READY_S: Final = 60.0
_POLL_S: Final = 0.1
_STOP_S: Final = 20.0


def program() -> Path:
    """Return the program, built if it is not in the cache."""
    folder = mpi_operator_folder()
    build([MPI_OPERATOR], folder)
    return folder / MPI_OPERATOR.name


def definition() -> Path:
    """Return the file of its CRD, which is part of its module."""
    # Not "go list", whose folder is empty when the program is in our cache and the module in none.
    command = ["go", "mod", "download", "-json", "github.com/kubeflow/mpi-operator"]
    run = subprocess.run(
        command, cwd=MPI_OPERATOR.module, capture_output=True, text=True, check=True
    )
    module = Path(json.loads(run.stdout)["Dir"])
    return module / "manifests" / "base" / "kubeflow.org_mpijobs.yaml"


@contextmanager
def running(folder: Path, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run it against the cluster of ``KUBECONFIG``, as the leader; its log is in the folder."""
    log = folder / f"{NAME}-{time.time_ns()}.log"
    command = [str(program()), f"--lock-namespace={_NAMESPACE}", *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait(process, log)
            yield process
        finally:
            process.terminate()
            process.wait(_STOP_S)
            # It keeps its lease, for which the next one would wait.
            Kubectl(_NAMESPACE)("delete", "lease", NAME, "--ignore-not-found")


def _wait(process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while _STARTED not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{NAME} does not work:\n{log.read_text()[-2000:]}")
        time.sleep(_POLL_S)
