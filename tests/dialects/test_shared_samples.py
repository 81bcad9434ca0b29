"""Manifests of users of the replaced systems, if available: read unchanged."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dlctl.dialects.kinds import kind_of_api_version
from dlctl.reconcilers.children.renderer import Renderer
from tests.builders import KINDS, job_object

FOLDER = Path(__file__).parents[2].parent / "shared" / "samples" / "mxjob"
SAMPLES = sorted(FOLDER.glob("*.yaml"))

pytestmark = pytest.mark.skipif(not SAMPLES, reason="the samples are not at hand")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in SAMPLES])
def test_sample_is_read_and_rendered(path: Path) -> None:
    wire: dict[str, Any] = yaml.safe_load(path.read_text())
    wire["metadata"] |= {"uid": "u", "namespace": "default"}
    kind = kind_of_api_version(KINDS, wire["apiVersion"], wire["kind"])
    assert kind is not None
    obj = kind.decode(job_object(wire))
    job = kind.read(obj)
    assert [spec.type for spec in job.replica_specs] == ["scheduler", "server", "worker"]
    assert {spec.port for spec in job.replica_specs} <= {9000, 9091}
    assert job.replica_specs[0].port == 9000
    renderer = Renderer(job, obj.dialect)
    pods = [renderer.pod(replica) for replica in job.replicas]
    assert [pod["spec"]["containers"][0]["name"] for pod in pods] == ["mxnet"] * 3
