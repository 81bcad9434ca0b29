"""Kubeflow's older versions: recognized by shape, with statuses in their own form."""

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, settings

from dlctl.api.job import Replica, SuccessPolicy
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.errors import InvalidJobError
from dlctl.kube.merge_diff import merge_diff
from tests.builders import (
    decoded,
    make_job,
    manifest,
    renderer_of,
    template,
    training_job,
)
from tests.dialects.statuses import STATUSES
from tests.support.typed_clients import undecodable_status


def tfjob(version: str, **spec: Any) -> dict[str, Any]:
    return manifest(f"kubeflow.org/{version}", "TFJob", spec, name="mnist")


def entry(type_: str = "", replicas: int = 1, **fields: Any) -> dict[str, Any]:
    given = {"tfReplicaType": type_} if type_ else {}
    return {**given, "replicas": replicas, "template": template("tensorflow"), **fields}


def mapped(*types: str, **fields: Any) -> dict[str, Any]:
    return {type_: {"template": template("tensorflow"), **fields} for type_ in types}


def listed() -> dict[str, Any]:
    entries = [entry("MASTER"), entry("PS", 2, tfPort=2223), entry("WORKER")]
    return tfjob("v1alpha1", replicaSpecs=entries, RuntimeId="abcd")


def test_v1alpha1_list_is_read() -> None:
    job = make_job(listed())
    assert [(spec.type, spec.replicas, spec.port) for spec in job.replica_specs] == [
        ("master", 1, 2222),
        ("ps", 2, 2223),
        ("worker", 1, 2222),
    ]
    assert job.resource.version == "v1alpha1"
    assert job.success_policy == SuccessPolicy.of_chief(Replica("master", 0))
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.ALL
    assert job.replica_specs[0].retry_policy is RetryPolicy.TABLE_AND_SIGNALS


def test_list_in_snake_case_is_recognized_and_rejected() -> None:
    with pytest.raises(InvalidJobError) as caught:
        make_job(tfjob("v1alpha1", replica_specs=[entry("MASTER")]))
    assert str(caught.value) == "spec.replica_specs: is not a field: write replicaSpecs"


@pytest.mark.parametrize("chief", ["MASTER", "WORKER"])
@pytest.mark.parametrize("count", [0, 2])
def test_list_has_one_master_or_none(count: int, chief: str) -> None:
    policy = {"chief": {"replicaName": chief, "replicaIndex": 0}}
    workers = entry("WORKER", 2)
    wire = tfjob(
        "v1alpha1", terminationPolicy=policy, replicaSpecs=[entry("MASTER", count), workers]
    )
    with pytest.raises(InvalidJobError) as caught:
        make_job(wire)
    assert str(caught.value) == (
        f"spec.replicaSpecs[0].replicas: is {count}, but there must be exactly 1 MASTER"
    )


def test_list_without_a_master_can_have_another_chief() -> None:
    policy = {"chief": {"replicaName": "WORKER", "replicaIndex": 0}}
    job = make_job(tfjob("v1alpha1", terminationPolicy=policy, replicaSpecs=[entry("WORKER", 2)]))
    assert job.success_policy == SuccessPolicy.of_chief(Replica("worker", 0))


def test_listed_type_without_replicas_stays_in_the_cluster() -> None:
    wire = tfjob("v1alpha1", replicaSpecs=[entry("MASTER"), entry("PS", 0)])
    pod = renderer_of(wire).pod(Replica("master", 0))
    (variable,) = pod["spec"]["containers"][0]["env"]
    cluster = json.loads(variable["value"])["cluster"]
    assert (cluster["ps"], "worker" in cluster) == ([], False)


def test_entry_without_type_is_the_master() -> None:
    job = make_job(tfjob("v1alpha1", replicaSpecs=[entry()]))
    assert [spec.type for spec in job.replica_specs] == ["master"]


def test_v1alpha1_children_keep_their_names_and_environment() -> None:
    renderer = renderer_of(listed())
    pod, service = (make(Replica("ps", 1)) for make in (renderer.pod, renderer.service))
    assert pod["metadata"]["name"] == service["metadata"]["name"] == "mnist-ps-abcd-1"
    assert pod["metadata"]["labels"] == {
        "kubeflow.org": "",
        "job_type": "PS",
        "runtime_id": "abcd",
        "tf_job_name": "mnist",
        "task_index": "1",
        "dlctl.dev/managed-by": "dlctl",
    }
    assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [
        ("tf-port", 2223)
    ]
    (variable,) = pod["spec"]["containers"][0]["env"]
    assert variable["name"] == "TF_CONFIG"
    assert json.loads(variable["value"]) == {
        "cluster": {
            "master": ["mnist-master-abcd-0:2222"],
            "ps": ["mnist-ps-abcd-0:2223", "mnist-ps-abcd-1:2223"],
            "worker": ["mnist-worker-abcd-0:2222"],
        },
        "task": {"type": "ps", "index": 1},
        "environment": "cloud",
    }


def test_v1alpha1_status_is_v1s_and_keeps_its_list() -> None:
    running = ReplicaStatus("ps", JobState.RUNNING, {JobState.RUNNING: 2})
    written = status_of_the_first_version(JobStatus(replica_statuses=(running,)))
    assert written["replicaStatuses"] == {"PS": {"active": 2}}
    assert written["dlctl"]["replicaStatuses"] == [
        {"tf_replica_type": "PS", "state": "Running", "ReplicasStates": {"Running": 2}}
    ]


def status_of_the_first_version(status: JobStatus) -> Mapping[str, Any]:
    return decoded(listed()).dialect.write_status(status)


@settings(max_examples=50)
@given(status=STATUSES)
def test_v1alpha1_status_decodes_in_v1_clients_and_is_read_back(
    status: JobStatus,
) -> None:
    typed = [attrs.evolve(r, type="ps") for r in status.replica_statuses][:1]
    status = attrs.evolve(status, phase=JobPhase.RUNNING, replica_statuses=tuple(typed))
    wire = status_of_the_first_version(status)
    assert undecodable_status(wire) == ""
    obj = decoded({**listed(), "status": wire})
    assert obj.dialect.read_status(obj) == status


def test_older_operators_list_in_v1s_field_is_read_and_replaced() -> None:
    replicas = [{"tf_replica_type": "PS", "state": "Running", "ReplicasStates": {"Running": 2}}]
    old = {"phase": "Running", "state": "Running", "reason": "", "replicaStatuses": replicas}
    status = make_job({**listed(), "status": old}).status
    assert status.written_by_other_operator
    assert status.replica_statuses == (
        ReplicaStatus("ps", JobState.RUNNING, {JobState.RUNNING: 2}),
    )
    ours = status_of_the_first_version(attrs.evolve(status, written_by_other_operator=False))
    patch = merge_diff(status_of_the_first_version(status), ours)
    assert patch["replicaStatuses"] == {"PS": {"active": 2}}


def test_map_is_read_alike_in_all_versions_and_in_any_case() -> None:
    for version in ("v1", "v1alpha2", "v1beta1", "v1beta2"):
        job = make_job(tfjob(version, tfReplicaSpecs=mapped("PS", "worker", "CHIEF")))
        assert [spec.type for spec in job.replica_specs] == ["chief", "ps", "worker"]
        # The version is not stored.
        assert job.resource.version == "v1"
        assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE


def test_policies_of_the_spec_are_defaults_of_the_run_policy() -> None:
    top = {"cleanPodPolicy": "Running", "backoffLimit": 3, "activeDeadlineSeconds": 5}
    policy = make_job(
        tfjob(
            "v1beta2",
            tfReplicaSpecs=mapped("Worker"),
            ttlSecondsAfterFinished=7,
            runPolicy={"backoffLimit": 4},
            **top,
        )
    ).run_policy
    assert policy.clean_pod_policy is CleanPodPolicy.RUNNING
    assert (policy.ttl_after_finished_s, policy.active_deadline_s, policy.backoff_limit) == (
        7,
        5,
        4,
    )


def test_draft_is_read_with_its_evaluator_and_its_one_restart_policy() -> None:
    specs = mapped("Chief", "Eval") | mapped("PS", restartPolicy="Never")
    job = make_job(tfjob("v1alpha2", tfReplicaSpecs=specs, restartPolicy="OnFailure"))
    assert [(spec.type, spec.template["spec"]["restartPolicy"]) for spec in job.replica_specs] == [
        ("chief", "OnFailure"),
        ("ps", "Never"),
        ("evaluator", "OnFailure"),
    ]


@pytest.mark.parametrize(
    ("kind", "version", "counts"),
    [
        pytest.param(kind, version, counts, id=f"{kind} {version}")
        for kind, counts, versions in (
            ("PyTorchJob", {"Master": 1, "Worker": 2}, ("v1alpha2", "v1beta1", "v1beta2")),
            ("MPIJob", {"Launcher": 1, "Worker": 2}, ("v1alpha2",)),
            ("MXJob", {"Scheduler": 1, "Server": 1, "Worker": 2}, ("v1alpha2", "v1beta1")),
        )
        for version in versions
    ],
)
def test_map_of_an_older_version_is_read_as_v1_with_policies_of_its_spec(
    kind: str, version: str, counts: Mapping[str, int]
) -> None:
    wire = training_job(kind, **counts)
    wire["spec"] |= {"cleanPodPolicy": "All", "backoffLimit": 3}
    older = make_job({**wire, "apiVersion": f"kubeflow.org/{version}"})
    assert older == make_job(wire)
    assert older.run_policy.clean_pod_policy is CleanPodPolicy.ALL
    assert older.run_policy.backoff_limit == 3


def test_label_of_a_tuning_server_becomes_an_annotation() -> None:
    server = {"replicas": 1, "label": "2080ti", "template": template("mxnet")}
    metadata = {"annotations": {"tuner-server-key": "own"}}
    tracker = {**server, "template": {**template("mxnet"), "metadata": metadata}}
    specs = {"TunerServer": server, "TunerTracker": tracker, "Tuner": {"template": template()}}
    wire = manifest("kubeflow.org/v1beta1", "MXJob", {"jobMode": "MXTune", "mxReplicaSpecs": specs})
    pod = renderer_of(wire).pod(Replica("tuner", 0))
    variables = {v["name"]: v["value"] for v in pod["spec"]["containers"][0]["env"]}
    assert json.loads(variables["MX_CONFIG"])["labels"] == {
        "tuner": "",
        "tunerserver": "2080ti",
        "tunertracker": "own",
    }


def test_unsupported_mpi_distribution_is_rejected() -> None:
    wire = training_job("MPIJob", Launcher=1, Worker=2)
    make_job({**wire, "spec": {**wire["spec"], "mpiDistribution": "OpenMPI"}})
    with pytest.raises(InvalidJobError, match=r"mpiDistribution.*must be one of OpenMPI"):
        make_job({**wire, "spec": {**wire["spec"], "mpiDistribution": "IntelMPI"}})


def test_container_can_have_xgboost_operators_name() -> None:
    wire = training_job("XGBoostJob", Master=1, Worker=1)
    for spec in wire["spec"]["xgbReplicaSpecs"].values():
        spec["template"] = template("sidecar", "xgboostjob")
    job = make_job(wire)
    assert {spec.container for spec in job.replica_specs} == {"xgboostjob"}
    pod = renderer_of(wire).pod(Replica("worker", 0))
    assert pod["spec"]["containers"][1]["ports"] == [
        {"name": "xgboostjob-port", "containerPort": 9999}
    ]


def torch_listed(**fields: Any) -> dict[str, Any]:
    specs = [
        {"replicaType": "WORKER", "replicas": 2, "template": template("pytorch")},
        {"masterPort": 23457, "template": template("pytorch")},
    ]
    spec = {"backend": "tcp", "masterPort": "23456", "replicaSpecs": specs, "RuntimeId": "abcd"}
    return manifest("kubeflow.org/v1alpha1", "PyTorchJob", {**spec, **fields}, name="mnist")


def test_list_of_pytorch_operator_is_read() -> None:
    job = make_job(torch_listed())
    assert [(spec.type, spec.replicas, spec.port) for spec in job.replica_specs] == [
        ("worker", 2, 23456),
        ("master", 1, 23457),
    ]
    assert job.resource.version == "v1alpha1"
    assert job.success_policy == SuccessPolicy.of_chief(Replica("master", 0))
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE


@pytest.mark.parametrize(
    ("replica", "rank", "address"),
    [
        pytest.param(Replica("master", 0), "0", "localhost", id="master"),
        pytest.param(Replica("worker", 1), "2", "mnist-master-abcd-0", id="worker"),
    ],
)
def test_replicas_of_pytorch_operators_list_connect_to_the_master(
    replica: Replica, rank: str, address: str
) -> None:
    pod = renderer_of(torch_listed()).pod(replica)
    assert pod["metadata"]["name"] == f"mnist-{replica.type}-abcd-{replica.index}"
    assert pod["metadata"]["labels"]["pytorch_job_name"] == "mnist"
    assert pod["metadata"]["labels"]["job_type"] == replica.type.upper()
    environment = {v["name"]: v["value"] for v in pod["spec"]["containers"][0]["env"]}
    assert environment == {
        "MASTER_PORT": "23457",
        "MASTER_ADDR": address,
        "WORLD_SIZE": "3",
        "RANK": rank,
        "PYTHONUNBUFFERED": "0",
    }


def test_chief_is_named_by_its_rank() -> None:
    second = {"master": {"replicaName": "WORKER", "replicaRank": 1}}
    job = make_job(torch_listed(terminationPolicy=second))
    assert job.success_policy == SuccessPolicy.of_chief(Replica("worker", 1))
    third = {"master": {"replicaName": "WORKER", "replicaRank": 2}}
    with pytest.raises(InvalidJobError, match=r"terminationPolicy\.master\.replicaRank: is 2"):
        make_job(torch_listed(terminationPolicy=third))


def test_status_of_pytorch_operators_list_has_its_field() -> None:
    running = ReplicaStatus("worker", JobState.RUNNING, {JobState.RUNNING: 2})
    status = JobStatus(replica_statuses=(running,))
    written = decoded(torch_listed()).dialect.write_status(status)
    assert written["replicaStatuses"] == {"Worker": {"active": 2}}
    assert written["dlctl"]["replicaStatuses"][0]["replica_type"] == "WORKER"
