"""Elastic PyTorch jobs: default limits, torchrun's variables, autoscaling."""

from typing import Any

import pytest

from dlctl.api.job import Replica
from dlctl.errors import InvalidJobError
from tests.builders import make_job, renderer_of, training_job

METRICS = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]


def elastic(policy: Any, *, master: bool = False, **spec: Any) -> dict[str, Any]:
    counts = {"Master": 1, "Worker": 3} if master else {"Worker": 3}
    wire = training_job("PyTorchJob", **counts)
    wire["spec"] |= {"elasticPolicy": policy, **spec}
    return wire


def environment(wire: dict[str, Any]) -> dict[str, str]:
    """Return the variables of worker 1, in order."""
    (container,) = renderer_of(wire).pod(Replica("worker", 1))["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        ({}, "3:3"),
        ({"minReplicas": 1}, "1:1"),
        ({"maxReplicas": 5}, "5:5"),
        ({"minReplicas": 2, "maxReplicas": 5}, "2:5"),
    ],
)
def test_missing_limit_defaults_to_the_other_or_the_number_of_workers(
    policy: Any, nodes: str
) -> None:
    assert environment(elastic(policy))["PET_NNODES"] == nodes


def test_torchrun_environment_has_the_policy_in_training_operators_order() -> None:
    policy = {
        "minReplicas": 1,
        "maxReplicas": 4,
        "rdzvBackend": "etcd",
        "rdzvPort": 2379,
        "rdzvHost": "etcd",
        "rdzvId": "run",
        "rdzvConf": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
        "standalone": True,
        "maxRestarts": 5,
        "nProcPerNode": 2,
    }
    assert list(environment(elastic(policy)).items()) == [
        ("PYTHONUNBUFFERED", "1"),
        ("PET_RDZV_ENDPOINT", "etcd:2379"),
        ("PET_RDZV_BACKEND", "etcd"),
        ("PET_NNODES", "1:4"),
        ("PET_MAX_RESTARTS", "5"),
        ("PET_NPROC_PER_NODE", "2"),
        ("PET_RDZV_ID", "run"),
        ("PET_RDZV_CONF", "a=1,b=2"),
        ("PET_STANDALONE", ""),
    ]


def test_rendezvous_is_at_the_first_worker_or_the_master() -> None:
    told = environment(elastic({"minReplicas": 1}, master=True, nprocPerNode="2"))
    assert list(told.items()) == [
        ("PYTHONUNBUFFERED", "1"),
        ("MASTER_PORT", "23456"),
        ("PET_MASTER_PORT", "23456"),
        ("MASTER_ADDR", "linear-master-0"),
        ("PET_MASTER_ADDR", "linear-master-0"),
        ("WORLD_SIZE", "8"),
        ("RANK", "2"),
        ("PET_NODE_RANK", "2"),
        ("PET_NPROC_PER_NODE", "2"),
        ("PET_RDZV_ENDPOINT", "linear-worker-0:23456"),
        ("PET_RDZV_BACKEND", "c10d"),
        ("PET_NNODES", "1:1"),
    ]


def test_setting_without_a_value_is_empty() -> None:
    policy = {"rdzvConf": [{"key": "is_host"}, {"key": "timeout", "value": "9"}]}
    assert environment(elastic(policy))["PET_RDZV_CONF"] == "is_host=,timeout=9"


@pytest.mark.parametrize(
    ("processes", "world_size"),
    [("auto", "4"), ("2", "8"), ("+2", "8"), ("08", "32"), ("cpu", "4")],
)
def test_world_size_counts_the_processes_if_they_are_a_number(
    processes: str, world_size: str
) -> None:
    wire = training_job("PyTorchJob", Master=1, Worker=3)
    wire["spec"]["nprocPerNode"] = processes
    assert environment(wire)["WORLD_SIZE"] == world_size


def test_policy_with_metrics_has_an_autoscaler() -> None:
    wire = elastic({"minReplicas": 2, "maxReplicas": 5, "metrics": METRICS})
    (scaler,) = renderer_of(wire).dependents(())
    body = renderer_of(wire).dependent(scaler)
    assert (body["apiVersion"], body["kind"]) == ("autoscaling/v2", "HorizontalPodAutoscaler")
    assert body["metadata"]["name"] == "linear"
    target = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "linear"}
    assert body["spec"] == {
        "scaleTargetRef": target,
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": METRICS,
    }
    assert not list(renderer_of(elastic({"minReplicas": 2})).dependents(()))


def test_one_worker_of_an_elastic_job_is_enough_for_success() -> None:
    assert make_job(elastic({})).success_policy.any_succeeds
    assert not make_job(elastic(None)).success_policy.any_succeeds


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([], "spec.elasticPolicy: must be an object"),
        ({"minReplicas": "1"}, "spec.elasticPolicy.minReplicas: must be an integer"),
        ({"maxReplicas": -1}, "spec.elasticPolicy.maxReplicas: is -1, but must be"),
    ],
)
def test_invalid_elastic_policy_is_rejected(policy: Any, message: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        make_job(elastic(policy))
    assert message in str(refused.value)
