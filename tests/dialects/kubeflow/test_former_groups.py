"""Kinds of groups that Kubeflow's operators had before they had Kubeflow's own."""

import json
from typing import Any

import pytest

from dlctl.api.job import Replica, SuccessPolicy
from dlctl.api.json_types import JSON
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.errors import InvalidJobError
from tests.builders import (
    decoded,
    kind_of,
    make_job,
    renderer_of,
    template,
    tfjob_of_tensorflow_org,
    training_job,
    xgboost_operators_job,
)

XGBOOST = "xgboostjob.kubeflow.org"


def env(pod: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}


def test_first_tfjob_has_the_defaults_of_its_operator() -> None:
    job = make_job(tfjob_of_tensorflow_org(replicaSpecs=[{"template": template("tensorflow")}]))
    (spec,) = job.replica_specs
    assert (spec.type, spec.replicas, spec.port) == ("master", 1, 2222)
    assert spec.retry_policy is RetryPolicy.TABLE_AND_SIGNALS
    assert job.success_policy == SuccessPolicy.of_chief(Replica("master", 0))
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.ALL


def test_pods_of_the_first_tfjob_have_its_labels_and_its_owner() -> None:
    pod = renderer_of(tfjob_of_tensorflow_org(RuntimeId="ab1c")).pod(Replica("worker", 1))
    labels = {
        "tensorflow.org": "",
        "job_type": "WORKER",
        "runtime_id": "ab1c",
        "tf_job_name": "linear",
        "task_index": "1",
    }
    assert labels.items() <= pod["metadata"]["labels"].items()
    assert "kubeflow.org" not in pod["metadata"]["labels"]
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"]) == ("tensorflow.org/v1alpha1", "TfJob")
    config = json.loads(env(pod)["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["ps"] == ["linear-ps-ab1c-0:2222"]


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        pytest.param({}, "tensorflow/tensorflow:1.3.0", id="default"),
        pytest.param({"tfImage": "mine:1"}, "mine:1", id="of the job"),
    ],
)
def test_parameter_server_without_a_template_runs_tensorflows_server(
    spec: dict[str, str], image: str
) -> None:
    wire = tfjob_of_tensorflow_org(**spec)
    del wire["spec"]["replicaSpecs"][1]["template"]
    pod = renderer_of(wire).pod(Replica("ps", 0))
    (container,) = pod["spec"]["containers"]
    assert (container["name"], container["image"]) == ("tensorflow", image)
    assert "TF_CONFIG" in env(pod)
    compile(container["command"][2], "the program", "exec")


def test_kubeflows_tfjob_needs_a_template_of_every_type() -> None:
    wire = {**tfjob_of_tensorflow_org(), "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob"}
    del wire["spec"]["replicaSpecs"][1]["template"]
    with pytest.raises(InvalidJobError, match="template"):
        make_job(wire)


def test_status_of_the_first_tfjob_is_a_list() -> None:
    wire = tfjob_of_tensorflow_org()
    replicas = [{"tf_replica_type": "MASTER", "state": "Running", "ReplicasStates": {"Running": 1}}]
    obj = decoded({**wire, "status": {"phase": "Running", "replicaStatuses": replicas}})
    status = obj.dialect.read_status(obj)
    assert [replica.type for replica in status.replica_statuses] == ["master"]
    assert obj.dialect.write_status(status)["replicaStatuses"] == replicas


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_pods_of_xgboost_operator_have_its_labels_and_its_owner(version: str) -> None:
    wire = xgboost_operators_job(version)
    pod = renderer_of(wire).pod(Replica("master", 0))
    labels = {
        "group-name": "kubeflow.org",
        "job-name": "linear",
        "replica-type": "master",
        "replica-index": "0",
        "job-role": "master",
    }
    assert labels.items() <= pod["metadata"]["labels"].items()
    assert not any(name.startswith("training.kubeflow.org") for name in pod["metadata"]["labels"])
    (owner,) = pod["metadata"]["ownerReferences"]
    assert owner["apiVersion"].startswith("xgboostjob.kubeflow.org/")


def test_replicas_of_xgboost_operator_have_the_environment_of_kubeflows() -> None:
    now = training_job("XGBoostJob", Master=1, Worker=2)
    for replica in (Replica("master", 0), Replica("worker", 1)):
        former = renderer_of(xgboost_operators_job()).pod(replica)
        assert env(former) == env(renderer_of(now).pod(replica))
        ports = former["spec"]["containers"][0]["ports"]
        assert ports == [{"name": "xgboostjob-port", "containerPort": 9999}]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"RunPolicy": {"cleanPodPolicy": "All"}}, id="as it was written"),
        pytest.param({"runPolicy": {"cleanPodPolicy": "All"}}, id="as it is written now"),
        pytest.param({"cleanPodPolicy": "All"}, id="in spec"),
    ],
)
def test_run_policy_of_xgboost_operator_is_read(spec: dict[str, Any]) -> None:
    wire = xgboost_operators_job(**spec)
    assert make_job(wire).run_policy.clean_pod_policy is CleanPodPolicy.ALL
    # Else the server would drop it.
    assert spec.keys() <= decoded(wire).dialect.spec_schema()["properties"].keys()


def test_run_policy_in_two_spellings_is_rejected() -> None:
    twice: JSON = {"runPolicy": {"suspend": True}, "RunPolicy": {"cleanPodPolicy": "All"}}
    with pytest.raises(InvalidJobError, match="is given twice, as runPolicy and RunPolicy"):
        make_job(xgboost_operators_job(**twice))


def test_training_operators_metrics_count_their_own_kind_only() -> None:
    kinds = [kind_of(f"{group}/v1", "XGBoostJob") for group in ("kubeflow.org", XGBOOST)]
    assert [kind.metric_label for kind in kinds] == ["xgboost", ""]
    assert len({kind.resource.group_resource for kind in kinds}) == 2
