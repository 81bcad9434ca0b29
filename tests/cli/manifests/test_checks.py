"""Wrong manifests end a run or a rendering with file, document, line, field and fix."""

from pathlib import Path

import pytest

from tests.builders import manifest, mxjob
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Written

CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
"""
JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train
spec:
  runPolicy:
    cleanPodPolicy: None
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: python
              command: ["true"]
"""
TEMPLATE = "spec.pytorchReplicaSpecs.Master.template"
CONTAINER = f"{TEMPLATE}.spec.containers[0]"


@pytest.mark.parametrize("command", ["run", "render"])
@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        pytest.param(
            "command:",
            "commandz:",
            [
                f"document 2, line 20: PyTorchJob train: {CONTAINER}.commandz",
                "did you mean command?",
            ],
            id="container",
        ),
        pytest.param(
            "          containers:",
            "          imagePullPolicy: Always\n          containers:",
            [f"unknown field 'imagePullPolicy'; it belongs in {CONTAINER.removesuffix('[0]')}"],
            id="field of containers in the pod",
        ),
        pytest.param(
            "    Master:",
            "    Master:\n      env: []",
            [f"unknown field 'env'; it belongs in {CONTAINER.removesuffix('[0]')}"],
            id="field of containers in the replica spec",
        ),
        pytest.param(
            "command:",
            "volumes: []\n              command:",
            [f"unknown field 'volumes'; it belongs in {CONTAINER.removesuffix('.containers[0]')}"],
            id="field of the pod in a container",
        ),
        pytest.param(
            "template:",
            "template:\n        labels: {team: a}",
            [f"unknown field 'labels'; it belongs in {TEMPLATE}.metadata"],
            id="labels of the pod in the template",
        ),
        pytest.param(
            "cleanPodPolicy",
            "cleanPodPolicie",
            ["document 2, line 11", "spec.runPolicy.cleanPodPolicie", "mean cleanPodPolicy?"],
            id="policy",
        ),
        pytest.param(
            "name: train",
            "name: train\n  labelz: {a: b}",
            ["document 2, line 9", "metadata.labelz", "did you mean labels?"],
            id="metadata",
        ),
        pytest.param(
            "name: train",
            "name: train\n  annotations: {a.io/inject: false}",
            [
                "document 2, line 9: PyTorchJob train: metadata.annotations[a.io/inject]: ",
                "must be a string, not false: put it in quotes",
            ],
            id="annotation that is no text",
        ),
        pytest.param(
            "name: train",
            "name: train\n  annotations: {dlctl.dev/exit-code-polcy: kubeflow}",
            [
                "document 2, line 9: PyTorchJob train: metadata.annotations",
                "[dlctl.dev/exit-code-polcy]: unknown annotation",
                "; did you mean dlctl.dev/exit-code-policy?",
            ],
            id="unknown annotation",
        ),
        pytest.param(
            "name: train",
            "name: train\n  annotations: {dlctl.dev/exit-code-policy: table}",
            ["[dlctl.dev/exit-code-policy]: is 'table': use kubeflow, or remove it"],
            id="annotation without effect",
        ),
        pytest.param(
            "replicas: 1",
            "replicas: -1",
            ["document 2, line 14", "spec.pytorchReplicaSpecs.Master.replicas: is -1"],
            id="value",
        ),
        pytest.param(
            "kind: PyTorchJob",
            "kind: PytorchJob",
            ["document 2, line 6", "PytorchJob in kubeflow.org/v1; did you mean PyTorchJob?"],
            id="kind",
        ),
        pytest.param(
            "apiVersion: kubeflow",
            "apiversion: kubeflow",
            ["document 2, line 5", "apiversion: unknown field", "did you mean apiVersion?"],
            id="field apiVersion",
        ),
        pytest.param(
            "kubeflow.org/v1\nkind: PyTorchJob",
            "kubeflow.org/v1\nkind: TFJobs",
            ["TFJobs in kubeflow.org/v1; did you mean TFJob?"],
            id="plural",
        ),
        pytest.param(
            "kubeflow.org/v1\nkind: PyTorchJob",
            "mpba.fbk.eu/v2\nkind: DLJob",
            ["dlctl does not serve DLJob in mpba.fbk.eu/v2; it serves MXJob, TFJob of this group"],
            id="kind unlike others of its group",
        ),
        pytest.param(
            "kind: PyTorchJob",
            "Kind: PyTorchJob",
            ["document 2, line 6: unknown field 'Kind'; did you mean kind?"],
            id="field kind",
        ),
        pytest.param(
            "kubeflow.org/v1",
            "kubeflow.org/v2",
            ["does not serve PyTorchJob in kubeflow.org/v2; it serves", "kubeflow.org/v1,"],
            id="version",
        ),
        pytest.param(
            "kubeflow.org/v1\nkind: PyTorchJob",
            "trainer.kubeflow.org/v1alpha1\nkind: TrainJob",
            ["does not serve TrainJob", "such as PyTorchJob in kubeflow.org/v1"],
            id="TrainJob",
        ),
        pytest.param(
            "kubeflow.org/v1\nkind: PyTorchJob",
            "tensorflow.org/v1alpha1\nkind: TFJob",
            ["does not serve TFJob", "write kind TfJob, or apiVersion kubeflow.org/v1alpha1"],
            id="TFJob of tensorflow.org",
        ),
        pytest.param(
            "kubeflow.org/v1\nkind: PyTorchJob",
            "mlkube.io/v1beta1\nkind: TfJob",
            ["does not serve TfJob", "write apiVersion tensorflow.org/v1alpha1"],
            id="TfJob of mlkube.io",
        ),
        pytest.param(
            "kubeflow.org/v1\nkind: PyTorchJob",
            "training.kubedl.io/v1alpha1\nkind: PyTorchJob",
            ["does not serve PyTorchJob", "form of kubeflow.org/v1: write apiVersion kubeflow"],
            id="KubeDL",
        ),
        pytest.param(
            "  name: train\n",
            "  {}\n",
            ["PyTorchJob without a name: metadata.name: is missing"],
            id="no name",
        ),
        pytest.param(
            '["true"]',
            '["echo", null]',
            [f"{CONTAINER}.command[1]: must be a string, not null"],
            id="null",
        ),
        pytest.param(
            "  name: train",
            "  name: train\n  namespace: My_Team",
            ["metadata.namespace: is 'My_Team': use lower-case letters, digits and '-'"],
            id="namespace",
        ),
        pytest.param(
            "kind: PyTorchJob",
            "kind: PyTorchJob\nmetadata: {name: other}\nspec: {}\nkind: PyTorchJob",
            ["line 9: kind is set twice: begin the second object with a line ---"],
            id="two objects in one",
        ),
    ],
)
def test_wrong_manifest_exits_2_with_line_field_and_fix(
    dlctl: Dlctl, tmp_path: Path, command: str, old: str, new: str, messages: list[str]
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG + JOB.replace(old, new))
    done = dlctl(command, str(path))
    assert done.code == 2
    assert done.err.startswith(f"dlctl: {path}")
    assert [text for text in messages if text not in done.err] == []


def test_wrong_namespace_of_a_flag_is_refused(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    done = dlctl("render", str(path), "-n", "My_Team")
    assert done.code == 2
    assert "namespace 'My_Team': use lower-case letters, digits and '-'" in done.err


def test_template_may_begin_like_an_object(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        JOB.replace("template:", "template:\n        apiVersion: v1\n        kind: Pod")
    )
    done = dlctl("check", str(path))
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("command", ["check", "render"])
def test_last_of_two_equal_fields_counts_with_a_warning(
    dlctl: Dlctl, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("image: python", "image: other\n              image: python"))
    done = dlctl(command, str(path))
    assert done.code == 0
    warning = "field 'image' is set twice: the last one counts, remove the other"
    assert warning in done.out + done.err
    assert "image: other" not in done.out


def test_object_may_begin_with_the_fields_of_another(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    first = "".join(f"  {line}\n" for line in JOB.splitlines())
    second = "- <<: *first\n  kind: PyTorchJob\n  metadata: {name: second}\n"
    path.write_text(f"apiVersion: v1\nkind: List\nitems:\n- &first\n{first}{second}")
    done = dlctl("render", str(path))
    assert (done.code, done.err) == (0, "")
    assert "name: second-master-0" in done.out


def test_problem_of_a_field_that_is_set_twice_is_of_the_last_one(
    dlctl: Dlctl, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("      replicas: 1", "      replicas: 1\n      replicas: -1"))
    done = dlctl("render", str(path))
    assert done.code == 2
    last = JOB.replace("      replicas: 1", "      replicas: -1").splitlines()
    line = last.index("      replicas: -1") + 2
    assert f"line {line}: PyTorchJob train: spec" in done.err


def test_all_problems_are_listed(dlctl: Dlctl, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("image:", "imag:").replace("command:", "commandz:"))
    done = dlctl("render", str(path))
    assert done.err.startswith("dlctl: 2 problems:\n  ")
    assert done.err.count(str(path)) == 2


def test_two_jobs_of_one_name_are_named(dlctl: Dlctl, tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(JOB)
    two.write_text(JOB)
    done = dlctl("run", str(one), str(two))
    assert done.code == 2
    assert f"{two}, line 4: PyTorchJob train: metadata.name" in done.err
    assert f"PyTorchJob train in {one}, line 1 has it as well" in done.err


def test_names_in_any_case_are_known_where_the_controller_reads_them(
    dlctl: Dlctl, written: Written
) -> None:
    job = mxjob(workers=1)
    template = job["spec"]["replicaSpecs"][0]["template"]
    template["spec"]["Containers"] = template["spec"].pop("containers")
    assert dlctl("render", written(job)).code == 0


@pytest.mark.parametrize(
    ("kind", "name"), [("TFJob", "TFReplicaSpecs"), ("MXJob", "MXReplicaSpecs")]
)
def test_replica_specs_in_another_case_are_named_with_the_right_one(
    kind: str, name: str, dlctl: Dlctl, written: Written
) -> None:
    right = f"{kind[:2].lower()}ReplicaSpecs"
    container = {"TFJob": "tensorflow", "MXJob": "mxnet"}[kind]
    template = {"spec": {"containers": [{"name": container, "image": "any"}]}}
    job = manifest("kubeflow.org/v1", kind, {name: {"Worker": {"template": template}}})
    done = dlctl("render", written(job))
    assert done.code == 2
    assert f"spec.{name}: unknown field '{name}': write {right}" in done.err
    assert "is missing" not in done.err


@pytest.mark.parametrize("kind", ["TFJob", "MXJob", "PyTorchJob"])
def test_type_in_a_map_of_types_is_said_to_be_the_key(
    kind: str, dlctl: Dlctl, written: Written
) -> None:
    field, type_field, container = {
        "TFJob": ("tfReplicaSpecs", "tfReplicaType", "tensorflow"),
        "MXJob": ("mxReplicaSpecs", "mxReplicaType", "mxnet"),
        "PyTorchJob": ("pytorchReplicaSpecs", "replicaType", "pytorch"),
    }[kind]
    template = {"spec": {"containers": [{"name": container, "image": "any"}]}}
    specs = {"Worker": {type_field: "WORKER", "template": template}}
    path = written(manifest("kubeflow.org/v1", kind, {field: specs}))
    done = dlctl("render", path)
    assert done.code == 2
    assert f"'{type_field}': the key, here Worker, is the type: remove it" in done.err


def test_field_that_kubernetes_removed_is_said_to_be_gone(dlctl: Dlctl, written: Written) -> None:
    job = mpi_job()
    job["metadata"]["clusterName"] = ""
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    worker["template"]["metadata"] = {"clusterName": ""}
    done = dlctl("render", written(job))
    assert done.code == 2
    assert done.err.count("'clusterName': Kubernetes has removed it: remove it") == 2


@pytest.mark.parametrize("field", ["uid", "resourceVersion", "namespace", "labels"])
def test_field_of_metadata_that_is_null_is_absent(
    field: str, dlctl: Dlctl, written: Written
) -> None:
    job = mpi_job()
    job["metadata"][field] = None
    assert dlctl("check", written(job)).code == 0
