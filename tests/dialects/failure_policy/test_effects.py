"""What ``failurePolicy`` changes in replica specs, in each form."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.policies.failure_policy import FailurePolicy
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.api.policies.retry_policy import RetryPolicy
from tests.builders import (
    make_job,
    manifest,
    mxjob,
    template,
    tfjob_of_tensorflow_org,
    training_job,
    xgboost_operators_job,
)
from tests.dialects.et_operator.manifests import elastic_job
from tests.mpi_v2beta1 import mpi_job


def mpi_v1alpha1() -> JSON:
    spec = {"replicas": 2, "template": template("mpi"), "runPolicy": {"failurePolicy": {}}}
    return manifest("kubeflow.org/v1alpha1", "MPIJob", spec)


def with_policy(wire: JSON) -> JSON:
    wire["spec"]["runPolicy"] = {"failurePolicy": {}}
    return wire


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(with_policy(training_job("PyTorchJob", Worker=2)), id="map"),
        pytest.param(with_policy(mxjob()), id="list"),
        pytest.param(with_policy(mxjob(group="fioravanzo.org")), id="list of another group"),
        pytest.param(with_policy(tfjob_of_tensorflow_org()), id="TfJob"),
        pytest.param(with_policy(xgboost_operators_job()), id="XGBoostJob of its own group"),
        pytest.param(mpi_v1alpha1(), id="one template"),
        pytest.param(with_policy(elastic_job()), id="TrainingJob"),
    ],
)
def test_policy_decides_instead_of_restart_policies_and_limits(wire: JSON) -> None:
    job = make_job(wire)
    assert job.run_policy.failure_policy == FailurePolicy()
    assert job.run_policy.backoff_limit is None
    decided = [spec for spec in job.replica_specs if job.failure_policy_decides(spec.type)]
    assert decided
    for spec in decided:
        assert spec.retry_policy is RetryPolicy.ALL
        assert spec.template["spec"]["restartPolicy"] == "Never"
    assert job.elasticity is None or job.elasticity.job_restart_limit == 0


def test_elastic_workers_keep_their_restart_policy() -> None:
    job = make_job(with_policy(elastic_job()))
    assert not job.failure_policy_decides("worker")
    assert [spec.retry_policy for spec in job.replica_specs if spec.type == "worker"] == [
        spec.retry_policy for spec in make_job(elastic_job()).replica_specs if spec.type == "worker"
    ]


def test_user_is_told_of_a_restart_policy_without_effect() -> None:
    wire = with_policy(training_job("PyTorchJob", Master=1, Worker=2))
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    wire["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"] = "Never"
    warnings = {warning.reason: warning.message for warning in make_job(wire).warnings}
    assert warnings["RestartPolicyIgnored"] == (
        "Worker: the restart policy has no effect, because runPolicy.failurePolicy decides about "
        "failures"
    )


@pytest.mark.parametrize(("grace_s", "warns"), [(None, True), (59, True), (60, False)])
def test_user_is_told_of_a_short_grace_period(grace_s: int | None, warns: bool) -> None:
    wire = with_policy(training_job("PyTorchJob", Worker=2))
    pod_spec = wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    if grace_s is not None:
        pod_spec["terminationGracePeriodSeconds"] = grace_s
    assert ("ShortGracePeriod" in {w.reason for w in make_job(wire).warnings}) is warns


def test_job_without_a_failure_policy_has_no_such_warnings() -> None:
    wire = training_job("PyTorchJob", Worker=2)
    wire["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    assert make_job(wire).warnings == ()


def test_failure_policy_decides_instead_of_the_job_of_a_launcher() -> None:
    policy = {"failurePolicy": {"maxRestarts": 2}, "activeDeadlineSeconds": 60}
    job = make_job(mpi_job(2, policy=policy))
    assert job.launcher_job == LauncherJob(backoff_limit=0)
    assert job.run_policy.active_deadline_s == 60
    assert [job.failure_policy_decides(spec.type) for spec in job.replica_specs] == [True, True]
    for spec in job.replica_specs:
        assert spec.retry_policy is RetryPolicy.ALL
        assert spec.template["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    ("given", "expected"), [("OnFailure", ["RestartPolicyIgnored"]), ("Never", []), (None, [])]
)
def test_restart_policy_of_a_launcher_is_ignored_with_a_warning(
    given: str | None, expected: list[str]
) -> None:
    wire = mpi_job(2, policy={"failurePolicy": {}})
    if given is not None:
        wire["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = given
    reasons = [warning.reason for warning in make_job(wire).warnings]
    assert [reason for reason in reasons if reason != "ShortGracePeriod"] == expected
