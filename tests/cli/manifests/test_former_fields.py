"""Fields of old manifests that no CRD lists: read, or ignored as they were then."""

import re
from pathlib import Path

import pytest

from tests.builders import training_job
from tests.contract.jobs import REPLICAS
from tests.support.command_line import Dlctl, Written

TEMPLATE = "template: {spec: {containers: [{name: NAME, image: any, command: [train]}]}}"
PYTORCH = f"""\
apiVersion: kubeflow.org/v1alpha1
kind: PyTorchJob
metadata: {{name: train}}
spec:
  backend: tcp
  masterPort: "23456"
  replicaSpecs:
    - {{replicas: 1, replicaType: MASTER, {TEMPLATE.replace("NAME", "pytorch")}}}
"""
MXNET = f"""\
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {{name: tune}}
spec:
  jobMode: MXTune
  successPolicy: AllWorkers
  mxReplicaSpecs:
    TunerTracker: {{replicas: 1, {TEMPLATE.replace("NAME", "mxnet")}}}
    TunerServer: {{label: 2080ti, replicas: 1, {TEMPLATE.replace("NAME", "mxnet")}}}
    Tuner: {{replicas: 1, {TEMPLATE.replace("NAME", "mxnet")}}}
"""
TENSORFLOW = f"""\
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {{name: train}}
spec:
  tensorboard: {{logDir: /logs, serviceType: LoadBalancer}}
  replicaSpecs:
    - {{replicas: 1, tfReplicaType: MASTER, {TEMPLATE.replace("NAME", "tensorflow")}}}
"""


@pytest.mark.parametrize("command", ["check", "render"])
@pytest.mark.parametrize(
    "manifest", [PYTORCH, MXNET, TENSORFLOW], ids=["pytorch", "mxnet", "tensorflow"]
)
def test_fields_of_old_manifests_are_known(
    dlctl: Dlctl, tmp_path: Path, command: str, manifest: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(manifest)
    assert dlctl(command, str(path)).code == 0


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (PYTORCH, "masterPort"),
        (MXNET, "label"),
        (MXNET, "successPolicy"),
        (TENSORFLOW, "tensorboard"),
    ],
)
def test_misspelt_field_of_an_old_manifest_is_unknown(
    dlctl: Dlctl, tmp_path: Path, manifest: str, field: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(manifest.replace(f"{field}:", f"{field}s:"))
    done = dlctl("check", str(path))
    assert f"unknown field '{field}s'; did you mean {field}?" in done.out + done.err


@pytest.mark.parametrize(
    ("api_version", "kind", "ignored"),
    [
        pytest.param("kubeflow.org/v1beta1", "PyTorchJob", True, id="PyTorchJob v1beta1"),
        pytest.param("kubeflow.org/v1alpha2", "TFJob", True, id="TFJob v1alpha2"),
        pytest.param("kubeflow.org/v1alpha2", "MPIJob", True, id="MPIJob v1alpha2"),
        pytest.param("xgboostjob.kubeflow.org/v1", "XGBoostJob", True, id="xgboost-operator"),
        pytest.param("kubeflow.org/v1", "XGBoostJob", False, id="XGBoostJob v1"),
        pytest.param("kubeflow.org/v1", "TFJob", False, id="TFJob v1"),
        pytest.param("kubeflow.org/v2beta1", "MPIJob", False, id="MPIJob v2beta1"),
    ],
)
def test_unknown_fields_are_ignored_where_the_operator_did_so(
    dlctl: Dlctl, written: Written, api_version: str, kind: str, *, ignored: bool
) -> None:
    job = {**training_job(kind, **REPLICAS[kind]), "apiVersion": api_version}
    specs = next(spec for name, spec in job["spec"].items() if name.endswith("ReplicaSpecs"))
    pod = specs["Worker"]["template"]["spec"]
    pod["imagePullPolicy"] = "Always"
    pod["containers"][0]["securityContext"] = {"fsGroup": 0}
    job["spec"]["worldSize"] = 2
    path = written(job)
    done = dlctl("check", path)
    assert done.code == (0 if ignored else 1)
    said = "  warning: " if ignored else "  problem: "
    found = [line for line in done.out.splitlines() if "unknown field" in line]
    assert len(found) == 3
    assert all(line.startswith(said) for line in found)
    rendered = dlctl("render", path)
    assert rendered.code == (0 if ignored else 2)
    assert "spec.worldSize" in rendered.err


def test_unknown_field_is_a_problem_beside_others(dlctl: Dlctl, written: Written) -> None:
    job = {**training_job("TFJob", Worker=-1), "apiVersion": "kubeflow.org/v1beta2"}
    job["spec"]["worldSize"] = 2
    done = dlctl("check", written(job))
    assert done.code == 1
    assert "spec.worldSize: unknown field 'worldSize'" in done.out


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_unknown_field_hides_no_problem_of_the_pods(
    dlctl: Dlctl, written: Written, version: str
) -> None:
    job = {**training_job("MPIJob", **REPLICAS["MPIJob"]), "apiVersion": f"kubeflow.org/{version}"}
    pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["containers"][0]["securityContext"] = {"fsGroup": 0}
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    done = dlctl("check", written(job))
    assert done.code == 1
    assert 'volumeMounts[0].name: Not found: "data"' in done.out
    assert "unknown field 'fsGroup'" in done.out


def test_unknown_field_outside_the_spec_is_a_problem_in_all_versions(
    dlctl: Dlctl, written: Written
) -> None:
    job = {**training_job("TFJob", Worker=1), "apiVersion": "kubeflow.org/v1beta2"}
    job["metadata"]["label"] = {}
    done = dlctl("check", written(job))
    assert done.code == 1
    assert re.search(r"problem: line \d+: metadata\.label: unknown field 'label'", done.out)


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
@pytest.mark.parametrize(
    ("kind", "replicas", "field"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "schedulerName: volcano"),
        ("PyTorchJob", "pytorchReplicaSpecs", "masterPort: 23456"),
        ("TFJob", "tfReplicaSpecs", "replicaSpecs: []"),
    ],
)
def test_field_of_the_list_form_has_no_place_in_the_map(
    dlctl: Dlctl, tmp_path: Path, version: str, kind: str, replicas: str, field: str
) -> None:
    container = {"PyTorchJob": "pytorch", "TFJob": "tensorflow"}[kind]
    path = tmp_path / "job.yaml"
    path.write_text(
        f"""\
apiVersion: kubeflow.org/{version}
kind: {kind}
metadata: {{name: train}}
spec:
  {field}
  {replicas}:
    Worker: {{{TEMPLATE.replace("NAME", container)}}}
"""
    )
    done = dlctl("check", str(path))
    assert done.code != 0
    name = field.partition(":")[0]
    assert f"spec.{name}: unknown field '{name}': it is a field of v1alpha1" in done.out


def test_field_without_effect_is_a_difference(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(TENSORFLOW)
    assert "differs: tensorboard is ignored" in dlctl("check", str(path)).out
