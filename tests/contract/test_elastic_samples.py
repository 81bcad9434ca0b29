"""Manifests of et-operator's users, if available: accepted and stored unchanged."""

from pathlib import Path

import pytest
import yaml

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.elastic_kinds import DEFINITIONS, path

FOLDER = Path(__file__).parents[2].parent / "shared" / "samples" / "et-operator"
SAMPLES = {file.stem: yaml.safe_load(file.read_text()) for file in sorted(FOLDER.glob("*.yaml"))}
# As in et-operator's own CRD.
DEFAULTS = {"TrainingJob": {"restartPolicy": "Never", "backoffLimit": 6}}

pytestmark = pytest.mark.skipif(not SAMPLES, reason="the samples are not at hand")


@pytest.mark.parametrize("wire", [pytest.param(wire, id=stem) for stem, wire in SAMPLES.items()])
async def test_sample_is_stored_unchanged(api: Api, wire: JSON) -> None:
    await api.define(DEFINITIONS[wire["kind"]])
    metadata = {name: value for name, value in wire["metadata"].items() if name != "namespace"}
    here = {**wire, "metadata": metadata}
    answer = await api.post(path(api, wire), here, fieldValidation="Strict")
    assert answer.code == 201, answer.body
    assert answer.body["spec"] == {**DEFAULTS.get(wire["kind"], {}), **wire["spec"]}
