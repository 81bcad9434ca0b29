"""Fields of old manifests that no CRD lists: read, or ignored as they were then."""

from pathlib import Path

import pytest

from tests.support.command_line import Dlctl

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
    assert done.code != 0
    assert f"unknown field '{field}s'; did you mean {field}?" in done.out + done.err


@pytest.mark.parametrize(
    ("kind", "replicas", "field"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "schedulerName: volcano"),
        ("PyTorchJob", "pytorchReplicaSpecs", "masterPort: 23456"),
        ("TFJob", "tfReplicaSpecs", "replicaSpecs: []"),
    ],
)
def test_field_of_the_list_form_has_no_place_in_the_map(
    dlctl: Dlctl, tmp_path: Path, kind: str, replicas: str, field: str
) -> None:
    container = {"PyTorchJob": "pytorch", "TFJob": "tensorflow"}[kind]
    path = tmp_path / "job.yaml"
    path.write_text(
        f"""\
apiVersion: kubeflow.org/v1
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
