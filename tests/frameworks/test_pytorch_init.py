"""The container in which PyTorch workers wait for their master."""

from typing import Any

import attrs
import pytest

from dlctl.api.defaults import JobDefaults
from dlctl.api.job import Replica
from dlctl.errors import ConfigError
from dlctl.frameworks.kubeflow.pytorch_init import PyTorchInit, check_template, init_containers
from dlctl.reconcilers.children.renderer import Renderer
from tests.builders import renderer_of, training_job

SEARCH = (
    "err=1;for i in $(seq 100); do if nslookup linear-master-0; then err=0 && break; "
    "fi;echo waiting for master; sleep 2; done; exit $err"
)
MASTER, WORKER = Replica("master", 0), Replica("worker", 1)


def pod_spec(
    renderer: Renderer, replica: Replica, settings: PyTorchInit | None = None
) -> dict[str, Any]:
    defaults = JobDefaults(framework_settings=(settings,) if settings else ())
    job = attrs.evolve(renderer.job, defaults=defaults)
    spec: dict[str, Any] = attrs.evolve(renderer, job=job).pod(replica)["spec"]
    return spec


def test_worker_waits_for_its_master_as_with_training_operator() -> None:
    spec = pod_spec(renderer_of(training_job("PyTorchJob", Master=1, Worker=2)), WORKER)
    assert spec["initContainers"] == [
        {
            "name": "init-pytorch",
            "image": "alpine:3.10",
            "imagePullPolicy": "IfNotPresent",
            "resources": {
                "limits": {"cpu": "100m", "memory": "20Mi"},
                "requests": {"cpu": "50m", "memory": "10Mi"},
            },
            "command": [
                "sh",
                "-c",
                SEARCH,
            ],
        }
    ]


def test_master_and_workers_without_one_have_no_init_container() -> None:
    with_master = renderer_of(training_job("PyTorchJob", Master=1, Worker=2))
    without = renderer_of(training_job("PyTorchJob", Worker=2))
    assert "initContainers" not in pod_spec(with_master, MASTER)
    assert "initContainers" not in pod_spec(without, WORKER)


def test_users_own_init_containers_come_first() -> None:
    wire = training_job("PyTorchJob", Master=1, Worker=2)
    template = wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["spec"]["initContainers"] = [{"name": "own", "image": "own:1"}]
    spec = pod_spec(renderer_of(wire), WORKER)
    assert [container["name"] for container in spec["initContainers"]] == ["own", "init-pytorch"]


def test_image_and_attempts_are_configurable() -> None:
    renderer = renderer_of(training_job("PyTorchJob", Master=1, Worker=2))
    spec = pod_spec(renderer, WORKER, PyTorchInit("here/busybox:1", max_tries=7))
    (waiting,) = spec["initContainers"]
    assert waiting["image"] == "here/busybox:1"
    assert "$(seq 7)" in waiting["command"][2]


def test_template_replaces_the_container() -> None:
    template = """
    - name: wait
      image: {{ .InitContainerImage }}
      command: [wait, {{- .MasterAddr -}}  , "{{.MaxTries}}"]
    - {name: other, image: x}
    """
    assert init_containers(PyTorchInit(template=template), "there") == [
        {"name": "wait", "image": "alpine:3.10", "command": ["wait", "there", "100"]},
        {"name": "other", "image": "x"},
    ]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("- name: {{ .Namespace }}", "{{.Namespace}} is not supported: use only"),
        ("{{ range .x }}", "{{range .x}} is not supported"),
        ("- name: [", "the rendered template is not YAML"),
        ("name: wait", "must be a list of containers"),
        ("- image: x", "must be a list of containers"),
    ],
)
def test_template_that_cannot_be_rendered_is_rejected_at_start(template: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_template(PyTorchInit(template=template))
    assert message in str(refused.value)
