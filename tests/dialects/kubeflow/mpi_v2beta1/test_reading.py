"""MPIJob v2beta1 as mpi-operator understands it: defaults, policies and the launcher's Job."""

import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.policies.scheduling_policy import SchedulingPolicy
from tests.builders import decoded, make_job, renderer_of
from tests.mpi_v2beta1 import mpi_job

LIMITS = {"backoffLimit": 2, "activeDeadlineSeconds": 30, "ttlSecondsAfterFinished": 0}


def policies(job: Job) -> dict[str, str]:
    """Return the restart policies of the pods by type."""
    return {spec.type: spec.template["spec"]["restartPolicy"] for spec in job.replica_specs}


def test_defaults_are_those_of_mpi_operator() -> None:
    wire = mpi_job()
    del wire["spec"]["mpiReplicaSpecs"]["Launcher"]["replicas"]
    job = make_job(wire)
    assert job.resource.version == "v2beta1"
    assert [(spec.type, spec.replicas) for spec in job.replica_specs] == [
        ("launcher", 1),
        ("worker", 2),
    ]
    assert policies(job) == {"launcher": "OnFailure", "worker": "Never"}
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert job.launcher_job == LauncherJob()
    assert job.shares_service


def test_children_have_mpi_operators_names() -> None:
    job = make_job(mpi_job(11))
    names = [job.child_name(replica) for replica in job.replicas]
    assert [names[0], names[-1]] == ["pi-launcher", "pi-worker-10"]
    assert {job.service_name(replica) for replica in job.replicas} == {"pi"}


def test_launcher_decides_and_all_workers_make_the_job_run() -> None:
    policy = make_job(mpi_job()).success_policy
    launcher = Replica("launcher", 0)
    assert policy.success_replicas == (launcher,)
    assert policy.running_replicas == (launcher, Replica("worker", 0), Replica("worker", 1))
    assert policy.all_run
    assert policy.tolerated_types == {"worker"}


def test_limits_are_those_of_the_launchers_job() -> None:
    job = make_job(mpi_job(policy=LIMITS))
    assert job.launcher_job == LauncherJob(
        backoff_limit=2, active_deadline_s=30, ttl_after_finished_s=0
    )
    assert job.run_policy == RunPolicy(scheduling_policy=SchedulingPolicy(schedule_timeout_s=0))


def test_deadline_may_exceed_32_bits_as_in_a_job() -> None:
    job = make_job(mpi_job(policy={"activeDeadlineSeconds": 4_294_967_296}))
    assert job.launcher_job == LauncherJob(active_deadline_s=4_294_967_296)


def test_annotation_lets_the_ttl_delete_the_job() -> None:
    wire = mpi_job(policy=LIMITS)
    wire["metadata"]["annotations"] = {"dlctl.dev/ttl-deletes-job": "true"}
    job = make_job(wire)
    assert job.run_policy.ttl_after_finished_s == 0
    assert job.launcher_job is not None
    assert job.launcher_job.ttl_after_finished_s is None


def test_policies_outside_the_run_policy_have_no_effect() -> None:
    wire = mpi_job(backoffLimit=3, cleanPodPolicy="All", restartPolicy="Never")
    job = make_job(wire)
    assert job.launcher_job == LauncherJob()
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert policies(job)["launcher"] == "OnFailure"


@pytest.mark.parametrize(
    ("policy", "waits", "warnings"),
    [
        pytest.param("AtStartup", False, [], id="at startup"),
        pytest.param("", False, [], id="empty"),
        pytest.param("WaitForWorkersReady", True, [], id="wait"),
        pytest.param("Whenever", True, ["UnknownLauncherCreationPolicy"], id="unknown"),
    ],
)
def test_launcher_waits_for_workers_unless_it_is_created_at_startup(
    policy: str, waits: bool, warnings: list[str]
) -> None:
    job = make_job(mpi_job(launcherCreationPolicy=policy))
    assert job.launcher_job == LauncherJob(waits_for_workers=waits)
    # In a gang, the workers do not wait for a launcher that waits for them.
    assert [spec.create_last for spec in job.replica_specs] == [waits, False]
    assert [warning.reason for warning in job.warnings] == warnings


def test_failed_workers_are_replaced_and_the_job_retries_the_launcher() -> None:
    launcher, worker = make_job(mpi_job()).replica_specs
    assert launcher.retry_policy is RetryPolicy.NONE
    assert worker.retry_policy is RetryPolicy.ALL


def test_first_container_takes_part_whatever_its_name() -> None:
    containers = [{"name": name, "image": "i"} for name in ("main", "mpi")]
    job = make_job(mpi_job(launcher={"containers": containers}, worker={"containers": containers}))
    assert [spec.container for spec in job.replica_specs] == ["main", "main"]


@pytest.mark.parametrize(
    ("launcher", "worker", "reasons"),
    [
        pytest.param({"restartPolicy": "Never"}, {}, ["SetPodTemplateRestartPolicy"], id="set"),
        pytest.param({}, {"restartPolicy": "Never"}, [], id="of a worker"),
    ],
)
def test_launcher_template_with_a_restart_policy_is_warned_about(
    launcher: JSON, worker: JSON, reasons: list[str]
) -> None:
    job = make_job(mpi_job(launcher=launcher, worker=worker))
    assert [warning.reason for warning in job.warnings] == reasons
    assert policies(job) == {"launcher": "OnFailure", "worker": "Never"}


@pytest.mark.parametrize(
    ("manager", "ignored"),
    [
        (None, False),
        ("kubeflow.org/mpi-operator", False),
        ("kueue.x-k8s.io/multikueue", True),
        ("example.com/another", True),
    ],
)
def test_job_of_another_controller_is_ignored(manager: str | None, ignored: bool) -> None:
    policy = {} if manager is None else {"managedBy": manager}
    obj = decoded(mpi_job(policy=policy))
    assert obj.dialect.managed_by_external_controller(obj) is ignored


def test_gang_has_mpi_operators_defaults() -> None:
    wire = mpi_job(launcher={"priorityClassName": "high"}, worker={"priorityClassName": "low"})
    wire["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "research"}
    policy = make_job(wire).run_policy.scheduling_policy
    assert (policy.queue, policy.priority_class, policy.schedule_timeout_s) == (
        "research",
        "high",
        0,
    )
    own = {"queue": "q", "priorityClass": "p", "scheduleTimeoutSeconds": 5}
    wire["spec"]["runPolicy"] = {"schedulingPolicy": own}
    policy = make_job(wire).run_policy.scheduling_policy
    assert (policy.queue, policy.priority_class, policy.schedule_timeout_s) == ("q", "p", 5)


def test_priority_of_the_worker_counts_if_the_launcher_has_none() -> None:
    policy = make_job(mpi_job(worker={"priorityClassName": "low"})).run_policy.scheduling_policy
    assert policy.priority_class == "low"


def test_labels_of_the_template_are_kept() -> None:
    wire = mpi_job()
    labels = {"app": "mine", "training.kubeflow.org/job-role": "x"}
    template = wire["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"labels": labels, "annotations": {"a": "b"}}
    metadata = renderer_of(wire).pod(Replica("worker", 0))["metadata"]
    assert metadata["labels"]["app"] == "mine"
    assert metadata["labels"]["training.kubeflow.org/job-role"] == "worker"
    assert "training.kubeflow.org/replica-type" not in metadata["labels"]
    assert metadata["annotations"]["a"] == "b"
