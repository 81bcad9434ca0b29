"""Reading TrainingJobs: et-operator's manifests, defaults, and new fields."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from dlctl.api.job import Replica, SuccessPolicy
from dlctl.api.policies.elasticity import AttachMode, Elasticity
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.dialects.et_operator.training_job import TrainingJobDialect
from tests.builders import NOW, decoded, kind_of, make_job, manifest
from tests.dialects.et_operator.manifests import GROUP, elastic_job, read_job, read_scaler

FOLDER = Path(__file__).parents[4] / "shared" / "samples" / "et-operator"
SAMPLES = {path.stem: path for path in FOLDER.glob("*.yaml")}
WORKER = Replica("worker", 1)
AGAIN, NEVER = RetryPolicy.TABLE_AND_SIGNALS, RetryPolicy.NONE

with_samples = pytest.mark.skipif(not SAMPLES, reason="the samples are not at hand")


def sample(name: str) -> dict[str, Any]:
    wire: dict[str, Any] = yaml.safe_load(SAMPLES[name].read_text())
    wire["metadata"] = {"namespace": "default", "name": "s", "uid": "u", **wire["metadata"]}
    return wire


@with_samples
def test_sample_of_a_job_is_read() -> None:
    job = make_job(sample("training_job"))
    launcher, worker = job.replica_specs
    assert (launcher.type, launcher.create_last, launcher.ports) == ("launcher", True, {})
    assert worker.ports == {"ssh-port": 22, "kubeai-service-port": 9009}
    assert (worker.replicas, worker.container) == (2, "mnist-elastic")
    assert job.elasticity == Elasticity(min_replicas=1, max_replicas=9)
    assert job.run_policy == RunPolicy(clean_pod_policy=CleanPodPolicy.RUNNING)
    assert [job.child_name(replica) for replica in job.replicas] == [
        "elastic-training-launcher", "elastic-training-worker-0", "elastic-training-worker-1",
    ]  # fmt: skip


@with_samples
@pytest.mark.parametrize(
    ("name", "count", "pods", "timeout_s"),
    [
        ("scale_in_count", 1, None, None),
        ("scale_in_pod", None, ("elastic-training-worker-1",), None),
        ("scale_out", 2, None, 300),
    ],
)
def test_sample_of_a_request_is_read(
    name: str, count: int | None, pods: Any, timeout_s: int | None
) -> None:
    scaler = read_scaler(sample(name))
    assert (scaler.job, scaler.invalid_reason) == ("elastic-training", "")
    assert (scaler.count, scaler.pods, scaler.timeout_s) == (count, pods, timeout_s)


def test_launcher_decides_and_failed_workers_are_tolerated() -> None:
    chief = Replica("launcher", 0)
    assert read_job().success_policy == SuccessPolicy(
        (chief,), (chief,), tolerated_types=frozenset({"worker"})
    )


def test_job_has_one_worker_by_default() -> None:
    job = read_job(worker={"replicas": None})
    assert job.replica_count("worker") == 1
    assert job.elasticity == Elasticity()


@pytest.mark.parametrize(
    ("launcher", "spec", "retries", "backoff_limit", "job_restart_limit"),
    [
        pytest.param({}, {}, NEVER, None, 0, id="nothing"),
        pytest.param({"restartPolicy": "Never"}, {}, NEVER, None, 0, id="never"),
        pytest.param({"restartPolicy": "Always"}, {}, AGAIN, 7, 0, id="launcher"),
        pytest.param({"restartPolicy": "OnFailure"}, {"backoffLimit": 2}, AGAIN, 3, 0, id="limit"),
        pytest.param({"restartPolicy": "ExitCode"}, {}, AGAIN, 7, 0, id="exit code"),
        pytest.param({}, {"restartPolicy": "OnFailure"}, AGAIN, None, 6, id="whole job"),
        pytest.param(
            {"restartPolicy": "Never"},
            {"restartPolicy": "OnFailure", "backoffLimit": 0},
            NEVER,
            None,
            0,
            id="whole job, never",
        ),
        pytest.param(
            {"restartPolicy": "Always"}, {"restartPolicy": "OnFailure"}, AGAIN, 7, 0, id="both"
        ),
    ],
)
def test_launcher_or_the_whole_job_is_restarted(
    launcher: Mapping[str, Any],
    spec: Mapping[str, Any],
    retries: RetryPolicy,
    backoff_limit: int | None,
    job_restart_limit: int,
) -> None:
    job = read_job(launcher=launcher, **spec)
    assert job.elasticity is not None
    assert job.replica_specs[0].retry_policy is retries
    assert job.run_policy.backoff_limit == backoff_limit
    assert job.elasticity.job_restart_limit == job_restart_limit
    assert job.elasticity.requires_launcher is (launcher.get("restartPolicy") == "Never")


@pytest.mark.parametrize(
    ("policy", "retries", "replaces", "done"),
    [
        (None, NEVER, False, False),
        ("Never", NEVER, False, False),
        ("Always", RetryPolicy.ALL, True, True),
        ("OnFailure", RetryPolicy.ALL, True, False),
        ("ExitCode", RetryPolicy.SIGNALS, True, False),
    ],
)
def test_workers_are_replaced_by_their_policy(
    policy: str | None, retries: RetryPolicy, replaces: bool, done: bool
) -> None:
    job = read_job(worker={"restartPolicy": policy, "backoffLimit": 3})
    assert job.replica_specs[1].retry_policy is retries
    assert job.elasticity == Elasticity(
        replace_failed=replaces, replace_succeeded=done, replacement_limit=3
    )


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({}, CleanPodPolicy.RUNNING),
        ({"cleanPodPolicy": "All"}, CleanPodPolicy.ALL),
        ({"cleanPodPolicy": "None"}, CleanPodPolicy.NONE),
        ({"cleanPodPolicy": ""}, CleanPodPolicy.NONE),
        ({"cleanPodPolicy": "whatever"}, CleanPodPolicy.NONE),
        ({"runPolicy": {"cleanPodPolicy": "All"}}, CleanPodPolicy.ALL),
    ],
)
def test_clean_pod_policy_is_read_as_by_et_operator(spec: Any, policy: CleanPodPolicy) -> None:
    job = read_job(**spec)
    assert job.run_policy.clean_pod_policy is policy
    assert [each.keep_after_finish for each in job.replica_specs] == [True, False]


@pytest.mark.parametrize("where", [lambda fields: fields, lambda fields: {"runPolicy": fields}])
def test_policies_are_read_from_spec_or_run_policy(where: Any) -> None:
    fields = {
        "activeDeadlineSeconds": 60,
        "ttlSecondsAfterFinished": 5,
        "suspend": True,
        "schedulingPolicy": {"minAvailable": 2, "queue": "q"},
    }
    policy = read_job(**where(fields)).run_policy
    assert (policy.active_deadline_s, policy.ttl_after_finished_s, policy.suspended) == (
        60,
        5,
        True,
    )
    assert (policy.scheduling_policy.min_available, policy.scheduling_policy.queue) == (2, "q")


@pytest.mark.parametrize(("value", "suspended"), [("true", True), ("false", False), ("", False)])
def test_annotation_suspends_a_job(value: str, suspended: bool) -> None:
    job = read_job(annotations={"job-supervisor.kube-ai.io/job-suspended": value})
    assert job.run_policy.suspended is suspended


@pytest.mark.parametrize(
    ("wish", "mode"),
    [(None, AttachMode.SSH), ("", AttachMode.SSH), ("KubExec", AttachMode.KUBEXEC)],
)
def test_launcher_attaches_by_ssh_by_default(wish: str | None, mode: AttachMode) -> None:
    elasticity = read_job(launcherAttachMode=wish).elasticity
    assert elasticity is not None
    assert elasticity.attach is mode


def test_policy_of_a_pod_template_is_overruled() -> None:
    wire = elastic_job()
    for entry in wire["spec"]["etReplicaSpecs"].values():
        entry["template"]["spec"]["restartPolicy"] = "Always"
    policies = [s.template["spec"]["restartPolicy"] for s in make_job(wire).replica_specs]
    assert policies == ["Never", "Never"]


def test_labels_are_et_operators() -> None:
    job, dialect = read_job(), TrainingJobDialect()
    common = {"group-name": "kai.alibabacloud.com", "training-job-name": "linear"}
    assert dialect.labels(job, Replica("launcher", 0)) == {
        **common,
        "training-job-role": "launcher",
    }
    of_worker = {**common, "training-job-role": "worker", "replica-index": "1"}
    assert dialect.labels(job, WORKER) == of_worker
    assert dialect.orphan_selector == "group-name=kai.alibabacloud.com"
    assert job.replica_specs[1].label_selector == (
        "group-name=kai.alibabacloud.com,training-job-name=linear,training-job-role=worker"
    )


@pytest.mark.parametrize(
    ("scaler", "scale_out", "workers", "label"),
    [
        ("ScaleOut:ml/more", True, (1, 2), "more"),
        ("ScaleOut:ml/more", True, (2,), ""),
        ("ScaleIn:ml/less", False, (1,), ""),
        ("", True, (1,), ""),
        (f"ScaleOut:ml/{'m' * 64}", True, (1,), ""),
    ],
)
def test_pods_added_by_a_scale_out_are_labelled_with_its_name(
    scaler: str, scale_out: bool, workers: tuple[int, ...], label: str
) -> None:
    job = read_job()
    scaling = ScaleOperation(scale_out, workers, NOW, scaler=scaler)
    status = attrs.evolve(job.status, membership=Membership(members=(0,), scaling=scaling))
    labels = TrainingJobDialect().pod_labels(attrs.evolve(job, status=status), WORKER)
    assert labels == ({"scaleout-name": label} if label else {})


def test_workers_are_those_of_the_membership() -> None:
    status = {"targetWorkers": ["linear-worker-0", "linear-worker-4"], "dlctl": {"membership": {}}}
    job = read_job(status=status)
    assert [str(replica) for replica in job.replicas] == ["launcher-0", "worker-0", "worker-4"]
    assert job.replica_count("worker") == 2


def test_only_workers_have_services() -> None:
    assert TrainingJobDialect().types_without_service == {"launcher"}


def test_kind_lists_the_resources_that_scale_its_jobs() -> None:
    kind = kind_of(GROUP, "TrainingJob")
    assert kind.scalers == (SCALE_INS, SCALE_OUTS)
    assert kind.creates_secrets
    assert kind_of("kubeflow.org/v1", "TFJob").scalers == ()


@pytest.mark.parametrize("spec", [None, 5, {}, {"etReplicaSpecs": {}}])
def test_spec_is_matched_by_its_replicas(spec: Any) -> None:
    wanted = isinstance(spec, dict) and "etReplicaSpecs" in spec
    assert TrainingJobDialect().matches(spec) is wanted
    obj = decoded(manifest(GROUP, "TrainingJob", spec))
    assert not obj.dialect.managed_by_external_controller(obj)
