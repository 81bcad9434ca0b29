"""The map form of Kubeflow's jobs, as far as the reader and not the schema decides."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.errors import InvalidJobError
from tests.builders import decoded, make_job, renderer_of, training_job
from tests.mpi_v2beta1 import mpi_job


@pytest.mark.parametrize("name", ["3f2a-train", "my.job", "m" * 54])
def test_job_without_services_can_have_a_name_invalid_for_services(name: str) -> None:
    assert make_job(training_job("MPIJob", name, Launcher=1, Worker=1)).key.name == name


def test_type_without_replicas_does_not_limit_the_job_name() -> None:
    name = "m" * 54
    assert make_job(training_job("TFJob", name, Worker=1, PS=0)).key.name == name


@pytest.mark.parametrize("spec", [{"backoffLimit": -1}, {"suspend": "x"}, {}])
def test_invalid_job_of_another_controller_is_recognized(spec: JSON) -> None:
    wire = training_job("JAXJob", Worker=1)
    wire["spec"]["runPolicy"] = {"managedBy": "kueue.x-k8s.io/multikueue", **spec}
    obj = decoded(wire)
    assert obj.dialect.managed_by_external_controller(obj)


@pytest.mark.parametrize("spec", [None, 5, {"runPolicy": 5}, {"runPolicy": {"managedBy": 5}}])
def test_undecodable_job_is_rejected(spec: Any) -> None:
    obj = decoded({**training_job("JAXJob", Worker=1), "spec": spec})
    assert not obj.dialect.managed_by_external_controller(obj)


@pytest.mark.parametrize(
    ("path", "value"),
    [("initContainers", 5), ("schedulingGates", 5), ("containers", [{"name": "jax", "ports": 5}])],
)
def test_malformed_template_makes_the_job_invalid(path: str, value: Any) -> None:
    wire = training_job("JAXJob", Worker=1)
    wire["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"][path] = value
    with pytest.raises(InvalidJobError, match="must be a list"):
        make_job(wire)


def test_finalizers_of_the_template_are_set_on_pods() -> None:
    wire = training_job("JAXJob", Worker=1)
    template = wire["spec"]["jaxReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"finalizers": ["example.com/mine"]}
    renderer = renderer_of(wire)
    (replica,) = renderer.job.replicas
    assert renderer.pod(replica)["metadata"]["finalizers"] == ["example.com/mine"]


@pytest.mark.parametrize(
    "wire",
    [training_job("MPIJob", Launcher=1, Worker=1), mpi_job(1)],
    ids=lambda wire: str(wire["apiVersion"]),
)
def test_pods_of_mpi_jobs_have_no_finalizers_as_those_of_their_operators(wire: JSON) -> None:
    for spec in wire["spec"]["mpiReplicaSpecs"].values():
        spec["template"]["metadata"] = {"finalizers": ["example.com/mine"], "labels": {"a": "b"}}
    renderer = renderer_of(wire)
    for replica in renderer.job.replicas:
        metadata = renderer.pod(replica)["metadata"]
        assert "finalizers" not in metadata
        assert metadata["labels"]["a"] == "b"


@pytest.mark.parametrize(
    ("given", "of_pod", "of_service"),
    [
        pytest.param([], {"pytorchjob-port": 23456}, {"pytorchjob-port": 23456}, id="none"),
        pytest.param([("master", 23456)], {"master": 23456}, {"master": 23456}, id="another name"),
        pytest.param(
            [("web", 80), ("metrics", 80)],
            {"web": 80, "metrics": 80, "pytorchjob-port": 23456},
            {"web": 80, "pytorchjob-port": 23456},
            id="a number twice",
        ),
        pytest.param(
            [("master", 5000), ("pytorchjob-port", 5000)],
            {"master": 5000, "pytorchjob-port": 5000},
            {"pytorchjob-port": 5000},
            id="the framework's among them",
        ),
    ],
)
def test_service_lists_each_port_number_once(
    given: list[tuple[str, int]], of_pod: dict[str, int], of_service: dict[str, int]
) -> None:
    wire = training_job("PyTorchJob", Master=1)
    (container,) = wire["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": name, "containerPort": number} for name, number in given]
    renderer = renderer_of(wire)
    (replica,) = renderer.job.replicas
    ports = renderer.pod(replica)["spec"]["containers"][0]["ports"]
    assert {port["name"]: port["containerPort"] for port in ports} == of_pod
    ports = renderer.service(replica)["spec"]["ports"]
    assert {port["name"]: port["port"] for port in ports} == of_service
    assert renderer.framework.port("master") == next(reversed(of_service.values()))
