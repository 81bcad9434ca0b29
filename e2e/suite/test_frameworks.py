"""The examples of Kubeflow's kinds train their models in real containers.

``E2E_FRAMEWORKS`` is the prefix that replaces that of the manifests' images.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from e2e import install
from e2e.kubectl import Kubectl

_PREFIX: Final = os.environ.get("E2E_FRAMEWORKS", "")
_EXAMPLES: Final = Path(__file__).parents[2] / "examples"
# Images that the controller itself uses, as settings in its environment.
_SETTINGS: Final = {
    "DLCTL_PYTORCH_INIT_CONTAINER_IMAGE": f"{_PREFIX}/pytorch:1.13.1",
    "DLCTL_MPI_KUBECTL_DELIVERY_IMAGE": f"{_PREFIX}/kubectl-delivery:1",
}
_TRAIN_S: Final = 240

pytestmark = pytest.mark.skipif(
    not _PREFIX, reason="E2E_FRAMEWORKS is empty: `make e2e-frameworks` has the images"
)


@pytest.fixture(scope="module", autouse=True)
def _images(controller: Kubectl) -> Iterator[None]:
    """Configure the controller with available images."""
    with install.with_settings(controller, _SETTINGS):
        yield


@pytest.mark.parametrize(
    ("manifest", "pods", "speaker"),
    [
        ("jax/linear-psum.yaml", 3, "worker-2"),
        ("mpi/linear-mpirun.yaml", 4, "launcher"),
        ("pytorch/linear-ddp.yaml", 3, "worker-1"),
        ("tensorflow/linear-mirrored.yaml", 3, "worker-1"),
        ("tensorflow/linear-ps.yaml", 4, "chief-0"),
    ],
)
def test_framework_trains_a_model(kubectl: Kubectl, manifest: str, pods: int, speaker: str) -> None:
    job = _submit(kubectl, manifest)
    kind, name = job["kind"], job["metadata"]["name"]
    _made(kubectl, pods)
    assert _end(kubectl, job) == "Succeeded"
    assert "learned y = " in kubectl("logs", f"{name}-{speaker}")
    header, row = kubectl("get", kind, name).splitlines()
    state = dict(zip(header.split(), row.split(), strict=True))["STATE"]
    assert state == "Succeeded"


def test_elastic_pytorch_job_continues_without_a_killed_worker(kubectl: Kubectl) -> None:
    job = _submit(kubectl, "pytorch/linear-elastic.yaml")
    name = job["metadata"]["name"]
    _made(kubectl, 3)
    stays, killed = f"{name}-worker-1", f"{name}-worker-2"
    kubectl.until(
        lambda: "epoch  3 of 24 with 3 workers" in _log(kubectl, stays),
        within_s=_TRAIN_S,
        what="three workers that train",
    )
    kubectl("delete", "pod", killed, "--force", "--grace-period=0", "--wait=false")
    assert _end(kubectl, job) == "Succeeded"
    said = _log(kubectl, stays)
    begun, *resumed = [line for line in said.splitlines() if "goes on after epoch" in line]
    assert begun.endswith("epoch 0")
    assert resumed, said
    assert not resumed[-1].endswith("epoch 0")
    assert "learned y = " in said


def _submit(kubectl: Kubectl, manifest: str) -> JSON:
    text = (_EXAMPLES / manifest).read_text().replace("image: dlctl/", f"image: {_PREFIX}/")
    job, script = yaml.safe_load_all(text)
    kubectl.apply(script, job)
    found: JSON = job
    return found


def _made(kubectl: Kubectl, count: int) -> None:
    kubectl.until(
        lambda: len(kubectl.items("pods")) == count, within_s=30, what=f"{count} pods of the job"
    )


def _log(kubectl: Kubectl, pod: str) -> str:
    found = kubectl.get("pod", pod)
    started = found and found["status"]["phase"] in ("Running", "Succeeded", "Failed")
    return kubectl("logs", pod) if started else ""


def _end(kubectl: Kubectl, job: JSON) -> str:
    """Wait for the end of a job, and return the type of its last condition."""

    def probe() -> str:
        found = kubectl.get(job["kind"], job["metadata"]["name"]) or {}
        conditions = (found.get("status") or {}).get("conditions") or [{"type": ""}]
        last: str = conditions[-1]["type"]
        return last if last in ("Succeeded", "Failed") else ""

    return kubectl.until(probe, within_s=_TRAIN_S, what=f"the end of {job['metadata']['name']}")
