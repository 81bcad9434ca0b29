"""Jobs of Kubeflow's kinds that each violate one rule, with the messages."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.jobs import job, policy, replicas

NONE: Any = None


def container(kind: str, type_: str = "Worker", **fields: Any) -> JSON:
    """Return a change of the containers of a replica type."""
    each = {"name": "pytorch", "image": "x"} | fields
    given = {name: value for name, value in each.items() if value is not None}
    return replicas(kind, type_, {"template": {"spec": {"containers": [given]}}})


def bad(kind: str, change: JSON, said: str, /, id_: str, **counts: int) -> Any:
    return pytest.param(job(kind, change, counts), said, id=f"{kind}, {id_}")


def bad_counts(kind: str, said: str, /, id_: str, **counts: int) -> Any:
    return bad(kind, {}, said, id_, **counts)


def below_minimum(path: str, value: int, bound: int) -> str:
    return (
        f"spec.{path}: Invalid value: {value}: "
        f"spec.{path} in body should be greater than or equal to {bound}"
    )


PYTORCH = "spec.pytorchReplicaSpecs"
RESTARTS = '"", "Always", "OnFailure", "Never", "ExitCode"'
TYPES = [
    bad(
        "PyTorchJob",
        {"pytorchReplicaSpecs": NONE},
        "spec: Invalid value: pytorchReplicaSpecs is missing: give a spec for each type of replica",
        "no specs",
    ),
    bad(
        "XGBoostJob",
        {"xgbReplicaSpecs": NONE},
        "spec.xgbReplicaSpecs: Required value",
        "no specs",
    ),
    bad(
        "TFJob",
        {"tfReplicaSpecs": NONE},
        "spec: Invalid value: tfReplicaSpecs is missing: give a spec for each type of replica",
        "no specs",
    ),
    bad(
        "JAXJob",
        replicas("JAXJob", "Worker", NONE),
        "spec.jaxReplicaSpecs in body should have at least 1 properties",
        "no types",
    ),
    bad(
        "PyTorchJob",
        container("PyTorchJob", "Boss"),
        f"{PYTORCH}: Invalid value: "
        "each replica type must be one of Master, Worker (case-sensitive)",
        "a type of no kind",
    ),
    bad(
        "XGBoostJob",
        container("XGBoostJob", "worker", name="xgboost"),
        "spec.xgbReplicaSpecs: Invalid value: "
        "each replica type must be one of Master, Worker (case-sensitive)",
        "a type in another case",
    ),
    bad(
        "TFJob",
        container("TFJob", "Boss", name="tensorflow"),
        "spec.tfReplicaSpecs: Invalid value: "
        "each replica type must be one of Chief, Master, PS, Worker, Evaluator",
        "a type of no kind",
    ),
    bad(
        "TFJob",
        container("TFJob", "worker", name="tensorflow"),
        "spec.tfReplicaSpecs: Invalid value: a replica type is listed twice, in another case",
        "a type twice",
    ),
    bad_counts(
        "TFJob",
        "spec.tfReplicaSpecs: Invalid value: a job may have at most 10000 replicas of all types",
        "many of each type",
        Chief=1,
        PS=5000,
        Worker=5000,
    ),
    bad_counts(
        "TFJob",
        "spec.tfReplicaSpecs: Invalid value: Chief and Master exclude each other: list one of them",
        "two chiefs",
        Chief=1,
        Master=1,
    ),
    bad_counts(
        "PyTorchJob",
        f"{PYTORCH}: Invalid value: Master.replicas must be 1",
        "two masters",
        Master=2,
        Worker=1,
    ),
    bad_counts(
        "PyTorchJob",
        f"{PYTORCH}: Invalid value: Master.replicas must be 1",
        "a master of none",
        Master=0,
        Worker=1,
    ),
    bad_counts(
        "PyTorchJob",
        f"{PYTORCH}: Invalid value: Worker.replicas must be 1 or more",
        "workers of none",
        Master=1,
        Worker=0,
    ),
    bad_counts(
        "XGBoostJob",
        "spec.xgbReplicaSpecs: Invalid value: Master is missing: there must be exactly 1",
        "no master",
        Worker=1,
    ),
    bad_counts(
        "XGBoostJob",
        "spec.xgbReplicaSpecs: Invalid value: Master.replicas must be 1",
        "two masters",
        Master=2,
    ),
    bad_counts(
        "JAXJob",
        below_minimum("jaxReplicaSpecs.Worker.replicas", -1, 0),
        "fewer than none",
        Worker=-1,
    ),
    bad_counts(
        "TFJob",
        below_minimum("tfReplicaSpecs.PS.replicas", -1, 0),
        "fewer than none",
        PS=-1,
        Worker=1,
    ),
    bad_counts(
        "PaddleJob", "should be less than or equal to 10000", "a slip of the keyboard", Worker=20000
    ),
]
# The field that is missing, and a container without it.
INCOMPLETE: list[tuple[str, dict[str, Any]]] = [
    ("env[0].name", {"env": [{"value": "a"}]}),
    ("ports[0].containerPort", {"ports": [{"name": "a"}]}),
    ("volumeMounts[0].mountPath", {"volumeMounts": [{"name": "a"}]}),
]
TEMPLATES = [
    bad(
        "TFJob",
        replicas("TFJob", "Worker", {"replicas": 1.0}),
        "invalid data, expected int, got float64 evaluating rule: a job may have at most 10000",
        "a float of replicas",
    ),
    bad(
        "PyTorchJob",
        replicas("PyTorchJob", "Worker", {"template": NONE}),
        f"{PYTORCH}.Worker.template: Required value",
        "no template",
    ),
    bad(
        "PyTorchJob",
        replicas("PyTorchJob", "Worker", {"template": {"spec": NONE}}),
        f"{PYTORCH}.Worker.template.spec: Required value",
        "no pod spec",
    ),
    bad(
        "PyTorchJob",
        replicas("PyTorchJob", "Worker", {"template": {"spec": {"containers": []}}}),
        f"{PYTORCH}.Worker.template.spec.containers in body should have at least 1 items",
        "no containers",
    ),
    bad(
        "PyTorchJob",
        container("PyTorchJob", image=None),
        f"{PYTORCH}.Worker.template.spec.containers[0].image: Required value",
        "no image",
    ),
    bad(
        "PyTorchJob",
        container("PyTorchJob", image=""),
        "Worker.template.spec.containers[0].image in body should be at least 1 chars long",
        "an empty image",
    ),
    *(
        bad(
            kind,
            container(kind, **fields),
            f"Worker.template.spec.containers[0].{said}: Required value",
            said,
        )
        for kind in ("PyTorchJob", "MPIJob")
        for said, fields in INCOMPLETE
    ),
    bad(
        "PyTorchJob",
        replicas("PyTorchJob", "Worker", {"restartPolicy": "Sometimes"}),
        f'restartPolicy: Unsupported value: "Sometimes": supported values: {RESTARTS}',
        "restart policy",
    ),
    *(
        bad(
            kind,
            container(kind, type_, name="main"),
            f"spec.{field}[{type_}]: Invalid value: "
            f"template.spec.containers has no container named {name}: "
            "give that name to the one that trains",
            "no container that trains",
        )
        for kind, field, type_, name in (
            ("TFJob", "tfReplicaSpecs", "Worker", "tensorflow"),
            ("PyTorchJob", "pytorchReplicaSpecs", "Master", "pytorch"),
            ("XGBoostJob", "xgbReplicaSpecs", "Worker", "xgboost"),
            ("PaddleJob", "paddleReplicaSpecs", "Worker", "paddle"),
            ("JAXJob", "jaxReplicaSpecs", "Worker", "jax"),
            ("MXJob", "mxReplicaSpecs", "Server", "mxnet"),
        )
    ),
]
MPI = [
    bad(
        "MPIJob",
        {"slotsPerWorker": 0},
        "spec.slotsPerWorker: Invalid value: must be 1 or more",
        "no slots",
    ),
    bad(
        "MPIJob",
        policy(managedBy="me"),
        "spec.runPolicy.managedBy: Invalid value: must be kubeflow.org/training-operator",
        "a manager that is none",
    ),
    bad_counts("MPIJob", "Launcher is missing: there must be exactly 1", "no launcher", Worker=2),
    bad_counts("MPIJob", "Launcher.replicas must be 1", "two launchers", Launcher=2),
]
LONGEST = "a" * 54
NAMES = [
    pytest.param(
        job("TFJob", name="a.b"),
        "metadata.name must be lower-case letters, digits and '-', and begin with a letter",
        id="dots",
    ),
    pytest.param(
        job("JAXJob", name="1a"),
        "metadata.name must be lower-case letters, digits and '-', and begin with a letter",
        id="digit",
    ),
    pytest.param(
        job("XGBoostJob", name="a" * 64, counts={"Master": 1}),
        "metadata.name must have at most 63 characters",
        id="name alone",
    ),
    pytest.param(
        job("MPIJob", name="a" * 64),
        "metadata.name must have at most 63 characters",
        id="name without services",
    ),
    pytest.param(
        job("PyTorchJob", name=LONGEST, counts={"Worker": 11}),
        "metadata.name is too long: the names of replicas, <name>-<type>-<index>, may have 63",
        id="names of replicas",
    ),
]
