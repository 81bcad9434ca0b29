"""``dlctl check`` finds what the API server would refuse: by the CRDs, and in pods."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dlctl.api.json_types import JSON
from tests.builders import mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job, scale_in, scale_out
from tests.docs.pages import ROOT
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Written

SAMPLES = ROOT.parent / "shared" / "samples"
VALID = sorted([*ROOT.glob("examples/**/*.yaml"), *SAMPLES.glob("**/*.yaml")])
POD = "spec.pytorchReplicaSpecs.Master.template.spec"


def _master(**spec: Any) -> JSON:
    """Return a job with fields added to the pod spec of its Master."""
    job = training_job("PyTorchJob", Master=1)
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"].update(spec)
    return job


def _container(**fields: Any) -> JSON:
    return {"name": "pytorch", "image": "python", **fields}


def _policy(kind: str = "PyTorchJob", **policy: Any) -> JSON:
    job = training_job(kind, Worker=1)
    job["spec"]["runPolicy"] = policy
    return job


def _with_spec(job: JSON, **fields: Any) -> JSON:
    return {**job, "spec": {**job["spec"], **fields}}


def _restarted(job: JSON, field: str, policy: str) -> JSON:
    job["spec"][field]["Worker"]["restartPolicy"] = policy
    return job


def _assert_refused(dlctl: Dlctl, path: str, message: str) -> None:
    done = dlctl("check", path)
    assert (done.code, done.err) == (1, "")
    assert "): 1 problem\n" in done.out
    assert message in done.out
    assert "  problem: line " in done.out


@pytest.mark.parametrize(
    ("job", "message"),
    [
        pytest.param(
            _policy(cleanPodPolicy="all"),
            'spec.runPolicy.cleanPodPolicy: Unsupported value: "all"',
            id="cleanPodPolicy",
        ),
        pytest.param(
            _restarted(training_job("PyTorchJob", Worker=1), "pytorchReplicaSpecs", "never"),
            'spec.pytorchReplicaSpecs.Worker.restartPolicy: Unsupported value: "never"',
            id="restartPolicy",
        ),
        pytest.param(
            _master(containers=[_container(resources={"limits": {"cpu": 0.5}})]),
            ".containers[0].resources.limits.cpu: must be a string, not 0.5: put it in quotes",
            id="quantity",
        ),
        pytest.param(
            _master(volumes=[{"name": "shm", "emptyDir": {"sizeLimit": "${SHM_SIZE}"}}]),
            ".sizeLimit: must be a quantity such as 500m, 2 or 16Gi, not '${SHM_SIZE}': fill in",
            id="placeholder",
        ),
        pytest.param(
            _master(containers=_container(command=["true"])),
            ".template.spec.containers: must be a list, not {",
            id="one container without a dash",
        ),
        pytest.param(
            mpi_job(slotsPerWorker="8"),
            "spec.slotsPerWorker: must be an integer, not '8': leave out the quotes",
            id="number in quotes",
        ),
        pytest.param(
            _policy("JAXJob", managedBy="foo.bar/x"),
            'spec.runPolicy.managedBy: Unsupported value: "foo.bar/x"',
            id="managedBy",
        ),
        pytest.param(
            _policy(schedulingPolicy={"minAvailable": 0}),
            "spec.runPolicy.schedulingPolicy.minAvailable: Invalid value: 0: should be greater",
            id="minAvailable",
        ),
        pytest.param(
            _with_spec(training_job("PyTorchJob", Worker=1), elasticPolicy={"maxReplicas": 0}),
            "spec.elasticPolicy.maxReplicas: is 0, but must be between 1 and 10000",
            id="maxReplicas",
        ),
        pytest.param(
            training_job("PyTorchJob", master=1, worker=1),
            "spec.pytorchReplicaSpecs: Invalid value: each replica type must be one of Master",
            id="types in lower case",
        ),
        pytest.param(
            mxjob(RuntimeId="a" * 17), "spec.RuntimeId: Too long", id="RuntimeId of MXJob"
        ),
    ],
)
def test_job_that_its_crd_refuses_is_a_problem(
    job: JSON, message: str, dlctl: Dlctl, written: Written
) -> None:
    _assert_refused(dlctl, written(job), message)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        pytest.param(
            mpi_job(policy={"cleanPodPolicy": "running"}),
            "spec.runPolicy.cleanPodPolicy: Unsupported value",
            id="cleanPodPolicy of MPIJob",
        ),
        pytest.param(
            _restarted(mpi_job(), "mpiReplicaSpecs", "never"),
            "spec.mpiReplicaSpecs.Worker.restartPolicy: Unsupported value",
            id="restartPolicy of MPIJob",
        ),
        pytest.param(
            mpi_job(mpiImplementation=""),
            "spec.mpiImplementation: Unsupported",
            id="implementation",
        ),
        pytest.param(
            mpi_job(launcherCreationPolicy="x" * 64),
            "spec.launcherCreationPolicy: Too long",
            id="launcherCreationPolicy",
        ),
        pytest.param(
            elastic_job(restartPolicy=""),
            "spec.restartPolicy: Unsupported value",
            id="restartPolicy of TrainingJob",
        ),
        pytest.param(
            elastic_job(launcherAttachMode="SSH"),
            "spec.launcherAttachMode: Unsupported value",
            id="launcherAttachMode",
        ),
        pytest.param(
            elastic_job(worker={"maxReplicas": 10000}),
            "spec.etReplicaSpecs.worker.maxReplicas: Invalid value: 10000",
            id="maxReplicas",
        ),
    ],
)
def test_job_with_launcher_that_its_crd_refuses_is_a_problem(
    job: JSON, message: str, dlctl: Dlctl, written: Written
) -> None:
    _assert_refused(dlctl, written(job), message)


def test_quantity_of_each_resource_is_a_problem_with_its_fix(
    dlctl: Dlctl, written: Written
) -> None:
    amounts = {"memory": "16GB", "nvidia.com/gpu": "<GPUS>", "vpc.amazonaws.com/efa": "$EFA"}
    done = dlctl("check", written(_master(containers=[_container(resources={"limits": amounts})])))
    assert done.code == 1
    assert "'16GB': write 16Gi" in done.out
    for name in ("nvidia.com/gpu: must be a quantity", "vpc.amazonaws.com/efa: must be a quantity"):
        assert f"resources.limits.{name}" in done.out
    assert done.out.count("fill in the placeholder first, as with `envsubst`") == 2
    assert "should match" not in done.out


def test_each_mapping_that_should_be_a_list_is_a_problem(dlctl: Dlctl, written: Written) -> None:
    job = training_job("PyTorchJob", Master=1, Worker=1)
    for spec in job["spec"]["pytorchReplicaSpecs"].values():
        spec["template"]["spec"]["containers"] = _container()
    done = dlctl("check", written(job))
    assert "): 2 problems\n" in done.out
    assert done.out.count(": begin each item with a dash") == 2


def test_each_violated_rule_is_a_problem(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("check", written(training_job("MPIJob", launcher=1, worker=1)))
    assert done.code == 1
    assert "spec.mpiReplicaSpecs: Invalid value: each replica type must be one of" in done.out
    assert "spec.mpiReplicaSpecs: Invalid value: Launcher is missing" in done.out


@pytest.mark.parametrize(
    ("scaler", "message"),
    [
        pytest.param(
            scale_in(toDelete={"count": 0}),
            "spec.toDelete: Invalid value: .spec.toDelete.count or .spec.toDelete.podNames, only",
            id="count",
        ),
        pytest.param(
            scale_in(toDelete={"podNames": []}),
            "spec.toDelete: Invalid value: .spec.toDelete.count or .spec.toDelete.podNames, only",
            id="podNames",
        ),
        pytest.param(scale_in(toDelete=None), "spec.toDelete: Required value", id="toDelete"),
        pytest.param(scale_out(toAdd={"count": 0}), "spec.toAdd.count: Invalid", id="ScaleOut"),
        pytest.param(
            scale_in(backoffLimit=1.5),
            "spec.backoffLimit: must be an integer, not 1.5",
            id="fraction",
        ),
        pytest.param(
            scale_in(backoffLimit=2**31),
            "spec.backoffLimit: is 2147483648, but must be between -2147483648 and 2147483647",
            id="number out of range",
        ),
        pytest.param(
            scale_out(toAdd={"count": 2**31}),
            "spec.toAdd.count: Invalid value: 2147483648: should be less than or equal to 10000",
            id="number over its maximum and out of range",
        ),
        pytest.param(
            scale_out(scripts="x"), "spec.scripts: unknown field 'scripts'", id="unknown field"
        ),
    ],
)
def test_scaler_that_its_crd_refuses_is_a_problem(
    scaler: JSON, message: str, dlctl: Dlctl, written: Written
) -> None:
    _assert_refused(dlctl, written(scaler), message)


def test_valid_scaler_is_no_job_but_checked(dlctl: Dlctl, written: Written) -> None:
    done = dlctl("check", written(scale_in()))
    assert done.code == 0
    assert "ScaleIn change (kai.alibabacloud.com/v1alpha1): valid\n" in done.out


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            {"containers": [_container(), _container(name="UPPER")]},
            f'{POD}.containers[1].name: Invalid value: "UPPER"',
            id="name",
        ),
        pytest.param(
            {"containers": [_container(), _container()]},
            f"{POD}.containers[1].name: is 'pytorch', as another container's is",
            id="duplicate name",
        ),
        pytest.param(
            {"containers": [_container(volumeMounts=[{"name": "data", "mountPath": "/data"}])]},
            f'{POD}.containers[0].volumeMounts[0].name: Not found: "data"',
            id="volume",
        ),
        pytest.param(
            {
                "containers": [
                    _container(resources={"requests": {"a/gpu": 1}, "limits": {"a/gpu": None}})
                ]
            },
            f"{POD}.containers[0].resources.limits: Required value: Limit must be set",
            id="limit that is null",
        ),
    ],
)
def test_job_whose_pods_are_refused_is_a_problem(
    pod: JSON, message: str, dlctl: Dlctl, written: Written
) -> None:
    _assert_refused(dlctl, written(_master(**pod)), message)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        pytest.param(
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value"}}},
            "metrics[0].resource.target.averageUtilization: Required value: must set either",
            id="no amount",
        ),
        pytest.param(
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue"},
                    "target": {"type": "Utilization", "averageUtilization": 80},
                },
            },
            "metrics[0].external.target.averageValue: Required value: must set either",
            id="utilization of a metric that is no resource",
        ),
    ],
)
def test_job_whose_autoscaler_is_refused_is_a_problem(
    metric: JSON, message: str, dlctl: Dlctl, written: Written
) -> None:
    job = training_job("PyTorchJob", Worker=2)
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}
    _assert_refused(dlctl, written(job), f"spec.elasticPolicy.{message}")


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(
            _with_spec(
                training_job("PyTorchJob", Worker=2),
                elasticPolicy={"minReplicas": 1, "maxReplicas": 0},
            ),
            id="elasticPolicy",
        ),
        pytest.param(elastic_job(worker={"maxReplicas": 0}), id="TrainingJob"),
    ],
)
def test_maximum_of_no_replicas_is_one_problem(job: JSON, dlctl: Dlctl, written: Written) -> None:
    done = dlctl("check", written(job))
    assert done.code == 1
    assert done.out.count("eplicas: ") == 1
    assert "maxReplicas: is 0, but must be between 1 and " in done.out


def test_label_that_no_object_may_have_is_a_problem(dlctl: Dlctl, written: Written) -> None:
    job = _master()
    job["metadata"]["labels"] = {"team": "a b"}
    _assert_refused(dlctl, written(job), 'metadata.labels: Invalid value: "a b"')


def test_field_that_the_controller_cannot_read_is_reported_once(
    dlctl: Dlctl, written: Written
) -> None:
    done = dlctl("check", written(_policy(cleanPodPolicy=1, backoffLimit="x")))
    assert done.code == 1
    assert done.out.count("cleanPodPolicy") == 1
    assert "spec.runPolicy.backoffLimit: must be an integer, not 'x'" in done.out


def test_integer_beyond_64_bits_is_one_problem(dlctl: Dlctl, written: Written) -> None:
    job = training_job("PyTorchJob", Master=10**20)
    _assert_refused(dlctl, written(job), f"Master.replicas: is {10**20}, but must be between")


@pytest.mark.parametrize("command", ["run", "render"])
def test_other_commands_refuse_it_too(command: str, dlctl: Dlctl, written: Written) -> None:
    done = dlctl(command, written(_policy(cleanPodPolicy="all")))
    assert done.code == 2
    assert "spec.runPolicy.cleanPodPolicy: Unsupported value" in done.err


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in VALID])
def test_example_or_sample_is_valid(path: Path, dlctl: Dlctl) -> None:
    done = dlctl("check", str(path))
    assert (done.code, done.err) == (0, "")
    assert "problem" not in done.out


@pytest.mark.parametrize("missing", ["cel_expr_python", "re2"])
def test_missing_packages_are_named(
    missing: str, dlctl: Dlctl, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How Python itself notes that a module cannot be imported.
    monkeypatch.setitem(sys.modules, missing, None)
    path = written(_policy(cleanPodPolicy="all"))
    done = dlctl("check", path)
    assert (done.code, "pip install 'dlctl[local]'" in done.err) == (2, True)
    # The controller's image lacks these packages, and `dlctl render` works there.
    done = dlctl("render", path)
    assert done.code == 0
    assert next(yaml.safe_load_all(done.out))["kind"] == "Service"
