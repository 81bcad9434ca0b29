"""The table of variables of Kubeflow's kinds has those that pods get."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from dlctl.api.job import Replica
from dlctl.reconcilers.restart_attempts import RESTART_ATTEMPT_VARIABLE
from tests.builders import renderer_of, training_job
from tests.docs.pages import ROOT

_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "TFJob": ("Chief", "PS", "Worker", "Evaluator"),
    "PyTorchJob": ("Master", "Worker"),
    "XGBoostJob": ("Master", "Worker"),
    "PaddleJob": ("Master", "Worker"),
    "JAXJob": ("Worker",),
    "MPIJob": ("Launcher", "Worker"),
    "MXJob": ("Scheduler", "Server", "Worker"),
}
_ELASTIC: Final = {
    "maxRestarts": 3,
    "rdzvId": "linear",
    "rdzvConf": [{"key": "timeout", "value": "600"}],
    "standalone": True,
}
# Of all or several kinds, and below the table.
_COMMON: Final = {"PYTHONUNBUFFERED", RESTART_ATTEMPT_VARIABLE}


def listed(kind: str) -> set[str]:
    page = (ROOT / "docs/kinds/kubeflow.md").read_text()
    table = page.split("| kind | variable |")[1].split("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith(f"| {kind} |")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}


def variables_of(wire: dict[str, Any], kind: str) -> set[str]:
    renderer = renderer_of(wire)
    pods = [renderer.pod(Replica(type_.lower(), 0)) for type_ in _TYPES[kind]]
    containers = [container for pod in pods for container in pod["spec"]["containers"]]
    return {one["name"] for container in containers for one in container.get("env", ())}


@pytest.mark.parametrize("kind", _TYPES)
def test_variables_of_a_kind_are_those_of_the_table(kind: str) -> None:
    wire = training_job(kind, **dict.fromkeys(_TYPES[kind], 1))
    wire["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 1}}
    found = variables_of(wire, kind)
    if kind == "PyTorchJob":
        wire["spec"]["elasticPolicy"] = _ELASTIC
        found |= variables_of(wire, kind)
    assert found - _COMMON == listed(kind)
