"""Manifests of MPIJob v2beta1 for tests, as a server stores them."""

from typing import Any

from dlctl.api.json_types import JSON
from tests.builders import manifest, template

# The mark that the server's defaults leave in each object of this version.
SSH_PATH = "/root/.ssh"


def mpi_job(
    workers: int | None = 2,
    *,
    name: str = "pi",
    launcher: JSON | None = None,
    worker: JSON | None = None,
    policy: JSON | None = None,
    **spec: Any,
) -> JSON:
    """Return a job; ``launcher`` and ``worker`` are added to their pod specs.

    Without ``workers``, it lists no Worker.
    """
    specs: JSON = {"Launcher": {"replicas": 1, "template": template("mpi")}}
    if workers is not None:
        specs["Worker"] = {"replicas": workers, "template": template("mpi")}
        specs["Worker"]["template"]["spec"].update(worker or {})
    specs["Launcher"]["template"]["spec"].update(launcher or {})
    fields = {"sshAuthMountPath": SSH_PATH, "mpiReplicaSpecs": specs, **spec}
    if policy is not None:
        fields["runPolicy"] = policy
    return manifest("kubeflow.org/v2beta1", "MPIJob", fields, name=name)
