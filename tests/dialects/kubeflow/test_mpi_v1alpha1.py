"""MPIJob v1alpha1: one template and a number of workers or of units, run as v1."""

from typing import Any

import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.errors import InvalidJobError
from tests.builders import decoded, make_job, manifest, renderer_of

GPU = "nvidia.com/gpu"
MASTERS = ["node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"]


def mpi_job(*, pod: JSON | None = None, container: JSON | None = None, **spec: Any) -> JSON:
    """Return a job; ``pod`` and ``container`` are added to its template."""
    first = {
        "name": "mpi",
        "image": "horovod:1",
        "command": ["mpirun"],
        "args": ["python", "train.py"],
        **(container or {}),
    }
    template = {"spec": {"containers": [first], **(pod or {})}}
    spec = {"template": template, **spec}
    return manifest("kubeflow.org/v1alpha1", "MPIJob", spec, name="tf")


def limited(count: object) -> JSON:
    return {"resources": {"limits": {GPU: count}, "requests": {"cpu": "4"}}}


def pod_of(wire: JSON, type_: str) -> JSON:
    return renderer_of(wire).pod(Replica(type_, 0))


def first_container(wire: JSON, type_: str) -> JSON:
    container: JSON = pod_of(wire, type_)["spec"]["containers"][0]
    return container


def slots(job: Job) -> object:
    return job.spec["slotsPerWorker"]


@pytest.mark.parametrize(
    ("fields", "workers", "units"),
    [
        pytest.param({"replicas": 3}, 3, 1, id="replicas"),
        pytest.param({"replicas": 2, "container": limited(4)}, 2, 4, id="replicas with GPUs"),
        pytest.param({"replicas": 2, "container": limited("8")}, 2, 8, id="quoted"),
        pytest.param(
            {"replicas": 2, "container": limited(4), "slotsPerWorker": 2}, 2, 2, id="slots"
        ),
        pytest.param(
            {"replicas": 2, "container": limited(4), "slotsPerWorker": 1}, 2, 1, id="one slot"
        ),
        pytest.param(
            {
                "replicas": 2,
                "container": limited(4),
                "slotsPerWorker": 1,
                "sshAuthMountPath": "/root/.ssh",
            },
            2,
            4,
            id="defaults of v2beta1, by a webhook",
        ),
        pytest.param({"gpus": 2}, 2, 1, id="GPUs, one per node"),
        pytest.param({"gpus": 16, "gpusPerNode": 8}, 2, 8, id="GPUs"),
        pytest.param({"gpus": 2, "gpusPerNode": 8}, 1, 2, id="less than a node"),
        pytest.param(
            {
                "processingUnits": 6,
                "processingUnitsPerNode": 3,
                "processingResourceType": "cpu",
            },
            2,
            3,
            id="CPUs",
        ),
        pytest.param({}, 0, 1, id="launcher alone"),
    ],
)
def test_workers_and_slots_follow_the_units(fields: JSON, workers: int, units: int) -> None:
    job = make_job(mpi_job(**fields))
    assert (job.replica_count("launcher"), job.replica_count("worker")) == (1, workers)
    assert slots(job) == units


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        ({"gpus": 16, "gpusPerNode": 8}, {GPU: "8"}),
        (
            {"processingUnits": 2, "processingResourceType": "cpu", "container": limited(1)},
            {GPU: "1", "cpu": "1"},
        ),
        ({"replicas": 1, "container": limited(1)}, {GPU: "1"}),
    ],
)
def test_workers_get_the_units_of_the_job(fields: JSON, limits: JSON) -> None:
    found = first_container(mpi_job(**fields), "worker")["resources"]["limits"]
    assert {name: str(value) for name, value in found.items()} == limits


def test_workers_sleep_and_the_launcher_runs_the_command_without_their_resources() -> None:
    wire = mpi_job(replicas=1, container=limited(8))
    worker, launcher = (first_container(wire, type_) for type_ in ("worker", "launcher"))
    assert (worker["command"], worker["args"]) == (["sleep"], ["365d"])
    assert (launcher["command"], launcher["args"]) == (["mpirun"], ["python", "train.py"])
    assert "resources" not in launcher


def test_launcher_has_the_resources_that_arena_gives_it() -> None:
    wire = mpi_job(replicas=1, container=limited(8), launcherResources={"limits": {"cpu": "1"}})
    assert first_container(wire, "launcher")["resources"] == {"limits": {"cpu": "1"}}


def test_launcher_on_the_master_tolerates_and_requires_one() -> None:
    wire = mpi_job(replicas=1, launcherOnMaster=True)
    spec, worker = pod_of(wire, "launcher")["spec"], pod_of(wire, "worker")["spec"]
    assert [each["key"] for each in spec["tolerations"]] == MASTERS
    affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = [term["matchExpressions"][0]["key"] for term in affinity["nodeSelectorTerms"]]
    assert terms == MASTERS
    assert not {"tolerations", "affinity"} & worker.keys()


@pytest.mark.parametrize(("policy", "expected"), [("Never", "Never"), ("Always", "OnFailure")])
def test_launcher_is_retried_whatever_its_restart_policy(policy: str, expected: str) -> None:
    wire = mpi_job(replicas=1, pod={"restartPolicy": policy})
    job = make_job(wire)
    launcher = job.replica_spec("launcher")
    assert launcher is not None
    assert launcher.retry_policy is RetryPolicy.ALL
    assert pod_of(wire, "launcher")["spec"]["restartPolicy"] == expected
    assert pod_of(wire, "worker")["spec"]["restartPolicy"] == "Always"
    assert not job.warnings


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (CleanPodPolicy.RUNNING, 7, None)),
        ({"backoffLimit": 0, "cleanPodPolicy": "None"}, (CleanPodPolicy.NONE, 0, None)),
        ({"backoffLimit": 2, "activeDeadlineSeconds": 60}, (CleanPodPolicy.RUNNING, 3, 60)),
    ],
)
def test_run_policy_has_the_defaults_of_then(fields: JSON, expected: tuple[object, ...]) -> None:
    policy = make_job(mpi_job(replicas=1, **fields)).run_policy
    assert (policy.clean_pod_policy, policy.backoff_limit, policy.active_deadline_s) == expected


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gpus": 3, "gpusPerNode": 2}, "spec.gpus: is 3, but must be a multiple of gpusPerNode"),
        ({"gpus": 1, "replicas": 1}, "spec: has gpus, replicas, which exclude each other"),
        ({"gpus": 1, "processingUnits": 1}, "spec: has gpus, processingUnits, which exclude"),
        ({"gpus": 40000}, "spec.gpus: makes 40000 workers"),
        ({"processingResourceType": "tpu"}, "spec.processingResourceType: is 'tpu'"),
        ({"template": {}}, "spec.template.spec.containers: is missing"),
        ({"pod": {"containers": [{}]}}, "spec.template.spec.containers[0]"),
        ({"cleanPodPolicy": "Later"}, "cleanPodPolicy: is 'Later'"),
        ({"backoffLimit": -1}, "spec.backoffLimit: is -1"),
    ],
)
def test_error_names_the_field_of_this_form(fields: JSON, said: str) -> None:
    with pytest.raises(InvalidJobError) as raised:
        make_job(mpi_job(**fields))
    assert said in str(raised.value)


def test_pods_have_the_labels_by_which_arena_finds_them() -> None:
    labels = pod_of(mpi_job(replicas=1), "launcher")["metadata"]["labels"]
    assert {"group_name", "mpi_job_name", "mpi_role_type"} <= labels.keys()
    assert (labels["mpi_job_name"], labels["mpi_role_type"]) == ("tf", "launcher")


@pytest.mark.parametrize(
    ("state", "launcher", "expected"),
    [
        (JobState.RUNNING, 0, {"workerReplicas": 2}),
        (JobState.RUNNING, 1, {"workerReplicas": 2, "launcherStatus": "Active"}),
        (JobState.SUCCEEDED, 0, {"workerReplicas": 2, "launcherStatus": "Succeeded"}),
        (JobState.FAILED, 0, {"workerReplicas": 2, "launcherStatus": "Failed"}),
    ],
)
def test_status_has_the_fields_of_this_form(state: JobState, launcher: int, expected: JSON) -> None:
    counts = {"launcher": launcher, "worker": 2}
    replicas = tuple(
        ReplicaStatus(type_, state, {JobState.RUNNING: count}) for type_, count in counts.items()
    )
    status = JobStatus(phase=JobPhase.RUNNING, state=state, replica_statuses=replicas)
    wire = decoded(mpi_job()).dialect.write_status(status)
    assert {name: wire[name] for name in ("workerReplicas", "launcherStatus") if name in wire} == (
        expected
    )


def test_form_is_found_by_its_shape() -> None:
    assert decoded({**mpi_job(), "apiVersion": "kubeflow.org/v1"}).resource.version == "v1alpha1"
    mapped: JSON = {"mpiReplicaSpecs": {}, "template": {}}
    wire = manifest("kubeflow.org/v1alpha1", "MPIJob", mapped)
    assert decoded(wire).resource.version == "v1"
