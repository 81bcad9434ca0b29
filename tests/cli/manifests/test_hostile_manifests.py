"""Malformed values in manifests are reported; none crashes a check."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any, Final

import pytest

from dlctl.cli.check import manifest_reports
from dlctl.cli.manifests.loading import Manifest
from tests.builders import KINDS
from tests.dialects.et_operator.manifests import scale_out

_HOSTILE: Final[tuple[object, ...]] = (None, "x", 5, True, [], {}, [None], [{}], {"name": None})
_POD: Final[dict[str, Any]] = {
    "serviceAccountName": "default",
    "volumes": [
        {"name": "a", "configMap": {"name": "kube-root-ca.crt"}},
        {"name": "b", "projected": {"sources": [{"secret": {"name": "s"}}]}},
        {"name": "c", "hostPath": {"path": "/", "type": "Directory"}},
    ],
    "containers": [
        {
            "name": "pytorch",
            "image": "python",
            "envFrom": [{"secretRef": {"name": "s"}}],
            "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        }
    ],
}
_JOB: Final[dict[str, Any]] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": _POD}}}},
}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(item, (*path, key))


def _replaced(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    job = copy.deepcopy(_JOB)
    inner: Any = job
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return job


@pytest.mark.parametrize("value", _HOSTILE, ids=repr)
def test_each_value_may_be_malformed(value: object) -> None:
    for path in _paths(_JOB):
        # ``load`` refuses documents without a kind, and other metadata.
        if path not in {("kind",), ("metadata",)}:
            (report,) = manifest_reports(KINDS, [Manifest(_replaced(path, value))], "default")
            assert "\n".join(report.lines())


def test_text_that_is_not_utf8_is_a_problem() -> None:
    container = ("spec", "pytorchReplicaSpecs", "Worker", "template", "spec", "containers", 0)
    job = _replaced((*container, "image"), "t\udcff.py")
    (report,) = manifest_reports(KINDS, [Manifest(job)], "default")
    assert "'t\\udcff.py' is not UTF-8" in str(report.problems[0])


def test_spec_of_each_version_may_be_malformed() -> None:
    versions = [(kind.resource, version) for kind in KINDS for version in kind.dialects]
    jobs = [
        {
            "apiVersion": f"{resource.group}/{version}",
            "kind": resource.kind,
            "metadata": {"name": f"train-{number}"},
            "spec": value,
        }
        for number, ((resource, version), value) in enumerate(itertools.product(versions, _HOSTILE))
    ]
    reports = list(manifest_reports(KINDS, list(map(Manifest, jobs)), "default"))
    assert len(reports) == len(jobs)
    assert [report for report in reports if not report.problems] == []


@pytest.mark.parametrize(
    ("metadata", "problems"),
    [
        pytest.param(
            {"name": "train", "labels": {"team": 1}},
            ["metadata.labels[team]: must be a string", "spec.nprocPerNode: must be a string"],
            id="label",
        ),
        pytest.param(
            {"name": 1},
            ["metadata.name: must be a string", "spec.nprocPerNode: must be a string"],
            id="name",
        ),
    ],
)
def test_wrong_metadata_hides_no_problem_of_the_spec(
    metadata: dict[str, Any], problems: list[str]
) -> None:
    job = Manifest({**_JOB, "metadata": metadata, "spec": {**_JOB["spec"], "nprocPerNode": 2}})
    (report,) = manifest_reports(KINDS, [job], "default")
    found = [problem.message for problem in report.problems]
    assert len(found) == len(problems)
    assert all(map(str.startswith, found, problems))


def test_wrong_metadata_of_a_scaler_is_named_with_its_fix() -> None:
    scaler = scale_out(toAdd={"count": 0})
    scaler["metadata"]["labels"] = {"team": 1}
    (report,) = manifest_reports(KINDS, [Manifest(scaler)], "default")
    assert [str(problem.message) for problem in report.problems] == [
        "metadata.labels[team]: must be a string, not 1: put it in quotes",
        "spec.toAdd.count: Invalid value: 0: should be greater than or equal to 1",
    ]


@pytest.mark.parametrize("field", ["name", "namespace"])
@pytest.mark.parametrize("value", ["<JOB_NAME>", "$(trainingName)", "train-${USER}"])
@pytest.mark.parametrize("manifest", [_JOB, scale_out()], ids=["job", "scaler"])
def test_placeholder_for_a_name_is_called_so(
    manifest: dict[str, Any], value: str, field: str
) -> None:
    metadata = {**manifest["metadata"], field: value}
    (report,) = manifest_reports(KINDS, [Manifest({**manifest, "metadata": metadata})], "default")
    assert [problem.message for problem in report.problems] == [
        f"metadata.{field}: is {value!r}: fill in the placeholder first, as with `envsubst`"
    ]
