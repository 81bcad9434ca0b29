"""Init containers that dlctl adds: they comply with Pod Security where the user's program does."""

from typing import Any

import pytest

from dlctl.api.job import Replica
from dlctl.api.json_types import JSON
from tests.builders import renderer_of, template, training_job

RESTRICTED: JSON = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
LAUNCHER, WORKER = Replica("launcher", 0), Replica("worker", 0)


def pod_template(name: str, context: JSON) -> JSON:
    result = template(name, "sidecar")
    result["spec"]["containers"][0]["securityContext"] = context
    return result


def contexts(manifest: JSON, replica: Replica) -> dict[str, JSON | None]:
    init = renderer_of(manifest).pod(replica)["spec"].get("initContainers") or ()
    return {container["name"]: container.get("securityContext") for container in init}


def pytorch_job(context: JSON) -> JSON:
    job = training_job("PyTorchJob", Master=1, Worker=1)
    for spec in job["spec"]["pytorchReplicaSpecs"].values():
        spec["template"] = pod_template("pytorch", context)
    return job


def mpi_job(context: JSON) -> JSON:
    job = training_job("MPIJob", Launcher=1, Worker=1)
    for spec in job["spec"]["mpiReplicaSpecs"].values():
        spec["template"] = pod_template("mpi", context)
    return job


def elastic_job(context: JSON) -> JSON:
    replicas = {"replicas": 1, "template": pod_template("main", context)}
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "linear", "namespace": "ns", "uid": "job-uid"},
        "spec": {
            "launcherAttachMode": "kubexec",
            "etReplicaSpecs": {"launcher": replicas, "worker": replicas},
        },
    }


@pytest.mark.parametrize(
    ("manifest", "replica", "added"),
    [
        pytest.param(pytorch_job, WORKER, {"init-pytorch"}, id="pytorch"),
        pytest.param(mpi_job, LAUNCHER, {"kubectl-delivery"}, id="mpi"),
        pytest.param(elastic_job, LAUNCHER, {"kubectl-delivery", "init-hostfile"}, id="elastic"),
    ],
)
def test_added_init_containers_have_the_restrictions_of_the_program(
    manifest: Any, replica: Replica, added: set[str]
) -> None:
    assert contexts(manifest(RESTRICTED), replica) == dict.fromkeys(added, RESTRICTED)
    assert contexts(manifest({}), replica) == dict.fromkeys(added)


def test_what_is_granted_to_the_program_is_not_granted_to_init_containers() -> None:
    granted = {"privileged": True, "capabilities": {"add": ["IPC_LOCK"], "drop": ["NET_RAW"]}}
    assert contexts(pytorch_job(granted), WORKER) == {
        "init-pytorch": {"capabilities": {"drop": ["NET_RAW"]}}
    }


def test_init_container_starts_where_only_the_image_of_the_program_names_a_user() -> None:
    job = pytorch_job({"runAsNonRoot": True})
    assert contexts(job, WORKER) == {"init-pytorch": None}
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["securityContext"] = {
        "runAsUser": 1000
    }
    assert contexts(job, WORKER) == {"init-pytorch": {"runAsNonRoot": True}}


def test_init_containers_of_the_user_keep_their_own() -> None:
    job = pytorch_job(RESTRICTED)
    spec = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["initContainers"] = [{"name": "fetch", "image": "x"}]
    assert contexts(job, WORKER) == {"fetch": None, "init-pytorch": RESTRICTED}
