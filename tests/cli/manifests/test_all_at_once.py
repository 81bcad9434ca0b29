"""All problems of a manifest are found in one round: mending some shows no others."""

from collections.abc import Mapping
from typing import Any

import pytest

from dlctl.cli.manifests.checks import manifest_problems
from dlctl.cli.manifests.loading import Manifest
from dlctl.cli.manifests.yaml_lines import dotted
from tests.builders import KINDS

POD = "spec.pytorchReplicaSpecs.Worker.template.spec"


def problems(metadata: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the messages about a job by their fields; the image of its master is misspelt."""
    master = {"containers": [{"name": "pytorch", "imag": "python"}]}
    specs = {"Master": {"template": {"spec": master}}, "Worker": {"template": {"spec": pod}}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata,
        "spec": {"pytorchReplicaSpecs": specs},
    }
    found = manifest_problems(KINDS, [Manifest(job)], "default")
    messages = {dotted(each.path): each.message for each in found}
    misspelt = "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].imag"
    assert messages.pop(misspelt).endswith("unknown field 'imag'; did you mean image?")
    return messages


@pytest.mark.parametrize(
    ("pod", "field", "message"),
    [
        ({"containers": {"name": "pytorch"}}, "containers", "must be a list, not {'name': "),
        ({"containers": [{"image": ["python"]}]}, "containers[0].image", "must be a string, not ["),
        ({"volumes": [{"emptyDir": "x"}]}, "volumes[0].emptyDir", "must be an object, not 'x'"),
        ({"restartPolicy": {"a": 1}}, "restartPolicy", "must be a string, not {'a': 1}"),
    ],
)
def test_wrong_type_stands_beside_misspelt_field(
    pod: Mapping[str, Any], field: str, message: str
) -> None:
    found = problems({"name": "train"}, pod)[f"{POD}.{field}"]
    assert found.startswith(f"{POD}.{field}: {message}")


def test_all_wrong_metadata_stands_beside_misspelt_fields() -> None:
    metadata = {"name": 5, "labels": {"a": 1, "b": True}, "labelz": {"a": "b"}}
    pod = {"containers": [{"name": "pytorch", "image": "python"}]}
    assert problems(metadata, pod) == {
        "metadata.name": "metadata.name: must be a string, not 5: put it in quotes",
        "metadata.labels.a": "metadata.labels[a]: must be a string, not 1: put it in quotes",
        "metadata.labels.b": "metadata.labels[b]: must be a string, not true: put it in quotes",
        "metadata.labelz": "metadata.labelz: unknown field 'labelz'; did you mean labels?",
    }


def test_scaler_has_all_of_them_as_well() -> None:
    scaler = {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "ScaleOut",
        "metadata": {"generateName": 5, "labels": {"a": 1}},
        "spec": {"selector": {"job": "x"}, "toAdd": {"count": "2"}, "timeout": [300]},
    }
    found = manifest_problems(KINDS, [Manifest(scaler)], "default")
    assert sorted(each.message for each in found) == [
        "metadata.generateName: must be a string, not 5: put it in quotes",
        "metadata.labels[a]: must be a string, not 1: put it in quotes",
        "spec.selector.job: unknown field 'job'",
        "spec.timeout: must be an integer, not [300]",
        "spec.toAdd.count: must be an integer, not '2': leave out the quotes",
    ]
