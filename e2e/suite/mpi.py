"""MPIJobs of v2beta1 for the tests, and kubectl queries about them.

The image is that of the examples: Open MPI, MPICH and sshd, for root and for mpiuser.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl, KubectlError
from e2e.suite.kubeflow import true_conditions

IMAGE: Final = os.environ.get("E2E_MPI_IMAGE", "localhost/mpi:4.1.4")
RESOURCE: Final = "mpijobs.v2beta1.kubeflow.org"
# In a launcher: waits until a test lets it go on.
AWAIT_GO: Final = "until [ -e /tmp/go ]; do sleep 0.2; done"
_EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "mpi"
_LABELS: Final = "training.kubeflow.org"
_AS_ROOT: Final = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
_HOME: Final = "/home/mpiuser"


def example(name: str) -> JSON:
    """Return a manifest of the examples, with the image of the tests."""
    text = (_EXAMPLES / f"{name}.yaml").read_text()
    manifest: JSON = yaml.safe_load(text.replace("dlctl/mpi:4.1.4", IMAGE))
    return manifest


def job(name: str, script: str, *, workers: int = 2, **spec: Any) -> JSON:
    """Return a job whose launcher runs a script as root."""
    env = [{"name": variable, "value": "1"} for variable in _AS_ROOT]
    return _job(name, {"command": ["sh", "-c", script], "env": env}, {}, workers, **spec)


def job_of_mpiuser(name: str, script: str, *, workers: int = 2, **spec: Any) -> JSON:
    """Return a job whose containers run as a user of the image, as mpi-operator's examples do."""
    user = {"securityContext": {"runAsUser": 1000}}
    sshd = {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", f"{_HOME}/.sshd_config"]}
    launcher, worker = {**user, "command": ["sh", "-c", script]}, {**user, **sshd}
    return _job(name, launcher, worker, workers, sshAuthMountPath=f"{_HOME}/.ssh", **spec)


def _job(name: str, launcher: JSON, worker: JSON, workers: int, **spec: Any) -> JSON:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiReplicaSpecs": {
                # Its Job replaces a failed pod; otherwise the kubelet would restart the container.
                "Launcher": {**_replicas(1, launcher), "restartPolicy": "Never"},
                "Worker": _replicas(workers, worker),
            },
            **spec,
        },
    }


def _replicas(count: int, container: JSON) -> JSON:
    spec = {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "mpi", "image": IMAGE, **container}],
    }
    return {"replicas": count, "template": {"spec": spec}}


def status(kubectl: Kubectl, name: str) -> JSON:
    return (kubectl.get(RESOURCE, name) or {}).get("status") or {}


def reached(kubectl: Kubectl, name: str, condition: str, *, within_s: float = 120) -> JSON:
    """Wait until a condition of the job is true, and return its status."""

    def probe() -> JSON | None:
        found = status(kubectl, name)
        types = true_conditions(found)
        assert condition == "Failed" or "Failed" not in types, found
        return found if condition in types else None

    return kubectl.until(probe, within_s=within_s, what=f"{name} to be {condition}")


def pods(kubectl: Kubectl, name: str, role: str) -> list[JSON]:
    """Return the pods of a job that are not terminating."""
    labels = f"{_LABELS}/job-name={name},{_LABELS}/job-role={role}"
    return [
        pod for pod in kubectl.items("pods", labels) if "deletionTimestamp" not in pod["metadata"]
    ]


def names(found: Sequence[JSON]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in found)


def launcher_says(kubectl: Kubectl, name: str) -> str:
    """Return the output of the Job's newest pod; empty before it runs."""
    try:
        found = pods(kubectl, name, "launcher")
        newest = max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return kubectl("logs", newest["metadata"]["name"])
    except (KubectlError, ValueError):
        return ""


def until_said(kubectl: Kubectl, name: str, text: str, count: int = 1) -> str:
    """Wait until the launcher has printed a text this often, and return its output."""

    def probe() -> str:
        said = launcher_says(kubectl, name)
        return said if said.count(text) >= count else ""

    return kubectl.until(probe, within_s=150, what=f"{text!r} in the output of {name}")


def patch(kubectl: Kubectl, name: str, spec: str) -> None:
    kubectl("patch", RESOURCE, name, "--type=merge", "-p", f'{{"spec": {spec}}}')
