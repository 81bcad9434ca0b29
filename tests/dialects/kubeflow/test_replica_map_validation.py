"""Invalid jobs in the map form from servers without rules, with exact messages."""

from typing import Any

import pytest

from dlctl.errors import InvalidJobError
from tests.builders import make_job, template, training_job

FIELDS = {"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "MXJob": "mxReplicaSpecs"}


def refusal(kind: str, change: dict[str, Any], /, **counts: int) -> str:
    wire = training_job(kind, **(counts or {"Worker": 2}))
    wire["spec"] |= change
    with pytest.raises(InvalidJobError) as caught:
        make_job(wire)
    return str(caught.value)


def worker(kind: str, **fields: Any) -> dict[str, Any]:
    name = {"PyTorchJob": "pytorch", "TFJob": "tensorflow", "MXJob": "mxnet"}[kind]
    return {FIELDS[kind]: {"Worker": {"template": template(name), **fields}}}


@pytest.mark.parametrize(
    ("kind", "counts", "message"),
    [
        pytest.param(
            "TFJob",
            {"Chief": 1, "Master": 1},
            "spec.tfReplicaSpecs: lists Chief and Master, which exclude each other: "
            "list one of them",
            id="two chiefs",
        ),
        pytest.param(
            "TFJob",
            {"Worker": 1, "WORKER": 1},
            "spec.tfReplicaSpecs: lists Worker twice: give one spec a type",
            id="type twice",
        ),
        pytest.param(
            "TFJob",
            {"Eval": 1, "Evaluator": 1},
            "spec.tfReplicaSpecs: lists Evaluator twice: give one spec a type",
            id="type twice, once as it was called before",
        ),
        pytest.param(
            "PyTorchJob",
            {"Boss": 1},
            "spec.pytorchReplicaSpecs.Boss: is not a replica type: it must be one of Master, "
            "Worker",
            id="unknown type",
        ),
        pytest.param(
            "PyTorchJob",
            {"Master": 2},
            "spec.pytorchReplicaSpecs.Master.replicas: is 2, but there must be exactly 1 Master",
            id="two masters",
        ),
        pytest.param(
            "PyTorchJob",
            {"Worker": 0},
            "spec.pytorchReplicaSpecs.Worker.replicas: is 0, but must be 1 or more",
            id="no workers",
        ),
        pytest.param(
            "XGBoostJob",
            {"Worker": 1},
            "spec.xgbReplicaSpecs: lists no Master, but there must be exactly 1: add it",
            id="no master",
        ),
        pytest.param(
            "JAXJob",
            {"Worker": -1},
            "spec.jaxReplicaSpecs.Worker.replicas: is -1, but must be between 0 and 10000",
            id="fewer than none",
        ),
    ],
)
def test_invalid_set_of_replicas_is_rejected(
    kind: str, counts: dict[str, int], message: str
) -> None:
    assert refusal(kind, {}, **counts) == message


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        pytest.param(
            "PyTorchJob",
            worker("PyTorchJob", template=template("main")),
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers: has no container named "
            "pytorch: give that name to the one that trains",
            id="no container that trains",
        ),
        pytest.param(
            "TFJob",
            worker("TFJob", template={"spec": {"containers": [{"name": "tensorflow"}]}}),
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0].image: is missing: name the "
            "image that the container runs",
            id="no image",
        ),
        pytest.param(
            "TFJob",
            worker("TFJob", restartPolicy="Sometimes"),
            "spec.tfReplicaSpecs.Worker.restartPolicy: is 'Sometimes', but must be one of Always, "
            "OnFailure, Never, ExitCode",
            id="restart policy",
        ),
        pytest.param(
            "TFJob",
            {"successPolicy": "Some"},
            "spec.successPolicy: is 'Some', but must be one of AllWorkers",
            id="success policy",
        ),
        pytest.param(
            "MXJob",
            {"jobMode": "dist"},
            "spec.jobMode: is 'dist', but must be one of MXTrain, MXTune",
            id="mode of the list form",
        ),
        pytest.param(
            "PaddleJob",
            {"elasticPolicy": {"minReplicas": 3, "maxReplicas": 2}},
            "spec.elasticPolicy.minReplicas: is 3, but must not be more than maxReplicas, "
            "which is 2",
            id="limits the wrong way round",
        ),
        pytest.param(
            "PyTorchJob",
            {"nprocPerNode": "2", "elasticPolicy": {"nProcPerNode": 2}},
            "spec.elasticPolicy.nProcPerNode: must not be used with spec.nprocPerNode: "
            "leave it out",
            id="processes said twice",
        ),
        pytest.param(
            "PyTorchJob",
            {"elasticPolicy": {"rdzvPort": 0}},
            "spec.elasticPolicy.rdzvPort: is 0, but must be between 1 and 65535",
            id="port",
        ),
        pytest.param(
            "PyTorchJob",
            {"elasticPolicy": {"rdzvHost": 5}},
            "spec.elasticPolicy.rdzvHost: must be a string, not 5: put it in quotes",
            id="host",
        ),
        pytest.param(
            "TFJob",
            {"backoffLimit": -1},
            "spec.backoffLimit: is -1, but must be between 0 and 2147483647",
            id="policy where it once stood",
        ),
    ],
)
def test_invalid_spec_field_is_rejected(kind: str, change: dict[str, Any], message: str) -> None:
    assert refusal(kind, change) == message


def test_elastic_job_needs_workers() -> None:
    assert refusal("PyTorchJob", {"elasticPolicy": {}}, Master=1) == (
        "spec.elasticPolicy: needs replicas of the type Worker: add it to pytorchReplicaSpecs"
    )


def test_mpi_slots_are_at_least_one() -> None:
    said = refusal("MPIJob", {"slotsPerWorker": 0}, Launcher=1)
    assert said == "spec.slotsPerWorker: is 0, but must be 1 or more"


def test_replica_names_must_fit_into_a_label() -> None:
    with pytest.raises(InvalidJobError, match=r"metadata\.name: makes names such as 'a{54}-worker"):
        make_job(training_job("JAXJob", "a" * 54, Worker=11))


def test_job_with_too_many_replicas_is_rejected() -> None:
    with pytest.raises(
        InvalidJobError, match=r"^spec: asks for 10002 replicas, but a job may have"
    ):
        make_job(training_job("TFJob", PS=5000, Worker=5002))
