"""Distributed MXNet trains a model in real containers, in each of the three job forms."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite import jobs

_IMAGE: Final = os.environ.get("E2E_MXNET_IMAGE", "localhost/mxnet:1.9.1")
_EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "mxnet" / "linear-dist.yaml"
_NAME: Final = "linear-dist"

pytestmark = pytest.mark.skipif(not _IMAGE, reason="E2E_MXNET_IMAGE is empty")


def _kubeflow(entries: list[JSON], spec: JSON) -> JSON:
    return _manifest("kubeflow.org/v1alpha1", {**spec, "replicaSpecs": entries})


def _fioravanzo(entries: list[JSON], spec: JSON) -> JSON:
    return _manifest("fioravanzo.org/v1alpha1", {**spec, "replicaSpecs": entries})


def _bare(entries: list[JSON], _spec: JSON) -> JSON:
    kept = ("replicas", "template")
    return _manifest(
        "mpba.fbk.eu/v1",
        [{"replicaType": e["mxReplicaType"], **{key: e[key] for key in kept}} for e in entries],
    )


def _manifest(api_version: str, spec: Any) -> JSON:
    return {
        "apiVersion": api_version,
        "kind": "MXJob",
        "metadata": {"name": _NAME},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("resource", "form", "services"),
    [
        # Without a version kubectl shows the columns of v1, which are training-operator's.
        ("mxjobs.v1alpha1.kubeflow.org", _kubeflow, ["scheduler"]),
        ("mxjobs.fioravanzo.org", _fioravanzo, ["scheduler", "server", "worker", "worker"]),
        ("mxjobs.mpba.fbk.eu", _bare, ["scheduler", "server", "worker", "worker"]),
    ],
)
def test_mxnet_trains_a_model_on_the_replicas_of_a_job(
    kubectl: Kubectl,
    resource: str,
    form: Callable[[list[JSON], JSON], JSON],
    services: list[str],
) -> None:
    example, script = yaml.safe_load_all(_EXAMPLE.read_text())
    entries = example["spec"].pop("replicaSpecs")
    for entry in entries:
        entry["template"]["spec"]["containers"][0]["image"] = _IMAGE
    kubectl.apply(script, form(entries, example["spec"]))

    status = jobs.running(kubectl, _NAME, resource)
    assert status["state"] == "Running"
    assert sorted(_types(kubectl.items("services"))) == services
    pods = kubectl.items("pods")
    assert sorted(_types(pods)) == ["scheduler", "server", "worker", "worker"]
    for pod in pods:
        _check_environment(pod, pods)

    status = jobs.ended(kubectl, _NAME, resource, within_s=180)
    assert (status["phase"], status["state"]) == ("Done", "Succeeded")
    assert "learned y = 2.0" in kubectl("logs", _worker(pods, "0"))
    header, row = kubectl("get", resource).splitlines()
    assert header.split() == ["NAME", "PHASE", "STATE", "AGE"]
    assert row.split()[:3] == [_NAME, "Done", "Succeeded"]
    messages = " ".join(jobs.events(kubectl, _NAME, "SuccessfulCreate"))
    assert all(pod["metadata"]["name"] in messages for pod in pods)
    assert jobs.events(kubectl, _NAME, "MXJobSucceeded")


def _types(children: list[JSON]) -> list[str]:
    return [_type(child) for child in children]


def _type(child: JSON) -> str:
    # <job>-<type>-<runtime id>-<index>
    type_: str = child["metadata"]["name"].removeprefix(f"{_NAME}-").split("-")[0]
    return type_


def _worker(pods: list[JSON], index: str) -> str:
    names: list[str] = [pod["metadata"]["name"] for pod in pods if _type(pod) == "worker"]
    return next(name for name in names if name.endswith(f"-{index}"))


def _check_environment(pod: JSON, pods: list[JSON]) -> None:
    given = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
    assert given["DMLC_ROLE"] == _type(pod)
    assert (given["DMLC_NUM_SERVER"], given["DMLC_NUM_WORKER"]) == ("1", "2")
    scheduler = next(p["metadata"]["name"] for p in pods if _type(p) == "scheduler")
    assert given["DMLC_PS_ROOT_URI"].split(".")[0] == scheduler
