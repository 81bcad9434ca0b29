"""training-operator v1 as a process beside the cluster, with its limits lifted."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bench.cluster.operators import Operator, Program
from bench.cluster.scenario import TRAINING_OPERATOR
from dlctl.api.json_types import JSON
from e2e.cluster import programs
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.identity import Identity
from e2e.cluster.programs import Release

_NAMESPACE: Final = "default"
# Its webhooks serve with certificates from there, which it puts into the secret. None is called.
_CERTIFICATES: Final = Path("/tmp/k8s-webhook-server/serving-certs")
_REQUIRED: Final[list[JSON]] = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "training-operator-webhook-cert", "namespace": _NAMESPACE},
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validator.training-operator.kubeflow.org"},
        "webhooks": [],
    },
]
# It has synced by then: it says that it is ready by starting its workers, in its log.
_WORKERS: Final = "Starting workers"
_READY_S: Final = 60.0
_POLL_S: Final = 0.1
_STOP_S: Final = 20.0


def peer(folder: Path, program: Path) -> Program:
    command = [str(program), "--enable-scheme=PyTorchJob", "--controller-threads=8"]
    command += ["--kube-api-qps=2000", "--kube-api-burst=4000"]
    command += ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
    command += [f"--kubeconfig={folder / 'admin.kubeconfig'}"]
    return Program(TRAINING_OPERATOR, partial(_run, folder, command))


@contextmanager
def _run(folder: Path, command: Sequence[str]) -> Iterator[Operator]:
    _install(folder)
    log = folder / f"{TRAINING_OPERATOR}.log"
    with log.open("wb") as output:
        started_at = time.time()
        environment = os.environ | {"MY_POD_NAMESPACE": _NAMESPACE}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            _wait(process, log)
            yield Operator(TRAINING_OPERATOR, process.pid, started_at)
        finally:
            process.terminate()
            process.wait(_STOP_S)


def _install(folder: Path) -> None:
    cluster, identity = ControlPlane(folder, programs.folder(Release.NEWEST)), Identity(folder)
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": _REQUIRED})
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=document)
    _CERTIFICATES.mkdir(parents=True, exist_ok=True)
    shutil.copy(identity.certificate, _CERTIFICATES / "tls.crt")
    shutil.copy(identity.key, _CERTIFICATES / "tls.key")


def _wait(process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while _WORKERS not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{TRAINING_OPERATOR} does not work:\n{log.read_text()[-2000:]}")
        time.sleep(_POLL_S)
    # Its start is over, so that it is not measured.
    time.sleep(1.0)
