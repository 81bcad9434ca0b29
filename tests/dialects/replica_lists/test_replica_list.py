"""The list form of both mx-operators: defaults, and spelling in any case."""

from typing import Any

import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.dialects.dialect import Dialect
from tests.builders import entry, kind_of, make_job, mxjob, template

KUBEFLOW = "kubeflow.org"
FIORAVANZO = "fioravanzo.org"


def dialect(group: str) -> Dialect:
    return kind_of(f"{group}/v1alpha1").dialects["v1alpha1"]


def types(job: Job) -> list[tuple[str, int]]:
    return [(spec.type, spec.replicas) for spec in job.replica_specs]


def test_kubeflow_list_has_its_defaults() -> None:
    bare = entry("SCHEDULER", 1), {"template": template()}
    job = make_job(mxjob(replicaSpecs=list(bare)))
    assert types(job) == [("scheduler", 1), ("worker", 1)]
    assert [spec.port for spec in job.replica_specs] == [9091, 9091]
    assert job.success_policy.success_replicas[0] == Replica("scheduler", 0)
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.ALL
    assert job.replica_specs[0].retry_policy is RetryPolicy.TABLE
    assert not job.is_local


def test_fioravanzo_list_has_its_defaults() -> None:
    bare = {"template": template()}, entry("WORKER")
    job = make_job(mxjob(group=FIORAVANZO, replicaSpecs=list(bare)))
    assert types(job) == [("scheduler", 1), ("worker", 1)]
    assert [spec.port for spec in job.replica_specs] == [9000, 9000]
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert job.replica_specs[0].retry_policy is RetryPolicy.TABLE_AND_SIGNALS


@pytest.mark.parametrize(("group", "field"), [(KUBEFLOW, "PsRootPort"), (FIORAVANZO, "mxPort")])
def test_port_is_read_from_the_field_of_the_group(group: str, field: str) -> None:
    specs = [entry("SCHEDULER", **{field: 1234}), entry("WORKER")]
    job = make_job(mxjob(group=group, replicaSpecs=specs))
    assert job.replica_specs[0].port == 1234


def test_field_names_and_replica_types_are_read_in_any_case() -> None:
    wire = mxjob()
    pod = {"Spec": {"Containers": [{"NAME": "mxnet"}]}}
    wire["spec"] = {
        "ReplicaSpecs": [
            {"MXREPLICATYPE": "Scheduler", "REPLICAS": 1, "Template": pod, "psrootport": 1234},
            {"mxreplicatype": "worker", "Replicas": 4, "TEMPLATE": template()},
        ],
        "runtimeid": "ab1c",
        "CleanupPodPolicy": "RUNNING",
        "terminationpolicy": {"Chief": {"ReplicaName": "Worker", "replicaindex": 2}},
        "schedulername": "volcano",
    }
    job = make_job(wire)
    assert types(job) == [("scheduler", 1), ("worker", 4)]
    assert job.replica_specs[0].port == 1234
    assert job.replica_specs[0].template == {
        "spec": {"containers": [{"name": "mxnet"}], "restartPolicy": "OnFailure"}
    }
    assert job.runtime_id == "ab1c"
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.RUNNING
    assert job.success_policy.success_replicas[0] == Replica("worker", 2)
    assert job.scheduler_name == "volcano"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"jobMode": ""}, id="mode as the old operator serialised it"),
        pytest.param({"cleanupPodPolicy": ""}, id="empty policy"),
        pytest.param({"terminationPolicy": None}, id="null policy"),
        pytest.param({"RuntimeId": ""}, id="empty runtime id"),
        pytest.param({"futureField": {"x": 1}}, id="unknown field"),
    ],
)
def test_empty_field_changes_nothing(spec: dict[str, Any]) -> None:
    assert make_job(**spec) == make_job()


def test_template_is_kept_except_for_nulls() -> None:
    pod: dict[str, Any] = {
        "metadata": {"creationTimestamp": None, "labels": {"App": "a", "app": "b"}},
        "spec": {
            "containers": [{"name": "mxnet", "resources": {}, "env": [{"name": "A"}]}],
            "tolerations": [{"key": "gpu"}],
        },
    }
    job = make_job(replicaSpecs=[entry("SCHEDULER", template=pod)])
    assert job.replica_specs[0].template == {
        "metadata": {"labels": {"App": "a", "app": "b"}},
        "spec": {**pod["spec"], "restartPolicy": "OnFailure"},
    }


def test_local_job_is_one_deciding_worker() -> None:
    job = make_job(jobMode="Local", workers=5)
    assert job.is_local
    assert types(job) == [("worker", 1)]
    assert job.success_policy.success_replicas[0] == Replica("worker", 0)


def test_local_job_needs_no_scheduler() -> None:
    assert make_job(jobMode="local", replicaSpecs=[entry("WORKER")]).is_local


def test_server_without_a_template_runs_the_given_image() -> None:
    specs = [entry("SCHEDULER"), entry("SERVER", template=None)]
    job = make_job(mxImage="mxnet:1.9", replicaSpecs=specs)
    (container,) = job.replica_specs[1].template["spec"]["containers"]
    assert (container["name"], container["image"]) == ("mxnet", "mxnet:1.9")


def test_given_runtime_id_is_kept_without_a_spec_patch() -> None:
    job = make_job(RuntimeId="ab1c")
    assert job.runtime_id == "ab1c"
    assert job.spec_patch is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param({}, "RuntimeId", id="absent"),
        pytest.param({"runtimeId": None}, "RuntimeId", id="null"),
        pytest.param({"runtimeId": ""}, "runtimeId", id="empty in another case"),
    ],
)
def test_spec_patch_contains_only_the_derived_runtime_id(given: dict[str, Any], field: str) -> None:
    job = make_job(**given)
    assert job.spec_patch == {field: job.runtime_id}


def test_writing_the_derived_runtime_id_changes_no_name() -> None:
    before = make_job()
    after = make_job(**(before.spec_patch or {}))
    assert list(map(after.child_name, after.replicas)) == list(
        map(before.child_name, before.replicas)
    )


@pytest.mark.parametrize("group", [KUBEFLOW, FIORAVANZO])
def test_labels_are_those_of_the_operator(group: str) -> None:
    job = make_job(mxjob(group=group, RuntimeId="ab1c"))
    assert dialect(group).labels(job, Replica("worker", 1)) == {
        group: "",
        "job_type": "WORKER",
        "runtime_id": "ab1c",
        "mx_job_name": "linear",
        "task_index": "1",
    }


@pytest.mark.parametrize("spec", [None, [], "x", {"mxReplicaSpecs": {}}])
def test_other_form_is_not_matched(spec: Any) -> None:
    assert not dialect(KUBEFLOW).matches(spec)
    assert dialect(KUBEFLOW).matches({"REPLICASPECS": None})


def test_job_keeps_its_generation_and_key() -> None:
    job = make_job(mxjob())
    assert (str(job.key), job.uid, job.generation) == ("ml/linear", "job-uid", 1)
