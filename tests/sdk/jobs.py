"""Jobs as objects of the SDK, from manifests: one of each kind that it knows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kubeflow.training import TrainingClient
from kubeflow.training.utils.utils import FakeResponse

from dlctl.api.json_types import JSON
from tests.builders import training_job

IMAGE: Final = "sdk"
# The replica types of each kind, the one first that the SDK calls the master.
KINDS: Final[dict[str, dict[str, int]]] = {
    "TFJob": {"Worker": 2, "PS": 1},
    "PyTorchJob": {"Master": 1, "Worker": 2},
    "XGBoostJob": {"Master": 1, "Worker": 1},
    "MPIJob": {"Launcher": 1, "Worker": 2},
    "PaddleJob": {"Master": 1, "Worker": 1},
    "JAXJob": {"Worker": 2},
}
UNNUMBERED: Final = ("MPIJob",)


def master(kind: str, name: str) -> str:
    """Return the name of the pod that the SDK takes logs from."""
    type_ = next(iter(KINDS[kind])).lower()
    return f"{name}-{type_}" if kind in UNNUMBERED else f"{name}-{type_}-0"


def manifest(kind: str, name: str, command: Sequence[str], *, policy: str = "") -> JSON:
    """Return a job whose replicas all run a command; those of an MPIJob's workers wait for it."""
    made = training_job(kind, name, **KINDS[kind])
    specs: JSON = next(iter(made["spec"].values()))
    for type_, entry in specs.items():
        if policy:
            entry["restartPolicy"] = policy
        (container,) = entry["template"]["spec"]["containers"]
        container["image"] = IMAGE
        if (kind, type_) != ("MPIJob", "Worker"):
            container["command"] = list(command)
    # The SDK requires it.
    made["spec"]["runPolicy"] = {}
    return {**made, "metadata": {"name": name}}


def client_of(kind: str, kubeconfig: Path | str, namespace: str = "default") -> TrainingClient:
    return TrainingClient(config_file=str(kubeconfig), namespace=namespace, job_kind=kind)


def job(client: TrainingClient, wire: JSON) -> Any:
    """Return a manifest as an object of the SDK."""
    return client.api_client.deserialize(FakeResponse(wire), f"KubeflowOrgV1{wire['kind']}")


def suspend(client: TrainingClient, name: str, suspended: bool) -> bool:
    """Set the field once; return False if the controller has written the job meanwhile."""
    found = client.get_job(name)
    found.spec.run_policy = {"suspend": suspended}
    try:
        client.update_job(found, name)
    except RuntimeError as error:
        # The client repeats the server's error as text.
        if "(409)" not in str(error):
            raise
        return False
    return True
