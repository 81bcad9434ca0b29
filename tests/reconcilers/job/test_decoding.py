"""Decoding jobs that have started and whose specs are partly invalid."""

from typing import Any

import msgspec
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.policies.failure_policy import FailurePolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import JobPhase
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.failure_policy.reader import ANNOTATION
from dlctl.dialects.kind import Kind
from dlctl.reconcilers.content_errors import ContentError
from dlctl.reconcilers.job.decoding import DecodedJob, decode_job
from tests.builders import (
    bare_job,
    decoded,
    job_object,
    kind_of,
    manifest,
    mxjob,
    template,
    training_job,
)

POLICY = {"activeDeadlineSeconds": 100, "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 50}
RUNNING = {
    "conditions": [
        {"type": type_, "status": "True", "reason": type_, "message": "said"}
        for type_ in ("Created", "Running")
    ]
}
OWN = {**RUNNING, "dlctl": {"phase": "Running", "observedGeneration": 1}}


def tf_job(**fields: Any) -> JSON:
    job = training_job("TFJob", Chief=1, Worker=2)
    job["spec"]["runPolicy"] = dict(POLICY)
    job["spec"].update(fields)
    return job


def decode(
    wire: JSON, status: JSON | None = None, good: JSON | None = None, *, has_pods: bool = False
) -> DecodedJob:
    kind = kind_of(wire["apiVersion"], wire["kind"])
    obj = job_object({**wire, "status": OWN if status is None else status})
    raw = None if good is None else msgspec.Raw(msgspec.json.encode(good["spec"]))
    return decode_job(kind, kind.decode(obj), raw, has_pods=has_pods)


def job_of(found: DecodedJob) -> Job:
    assert found.job is not None
    return found.job


def holds_policy(job: Job) -> bool:
    policy = job.run_policy
    found = (
        policy.active_deadline_s,
        policy.clean_pod_policy,
        policy.ttl_after_finished_s,
        policy.suspended,
    )
    return found == (100, CleanPodPolicy.ALL, 50, False)


def with_type(job: JSON, name: str) -> JSON:
    job["spec"]["tfReplicaSpecs"][name] = {"replicas": 1, "template": template("tensorflow")}
    return job


def test_valid_spec_is_decoded_unchanged() -> None:
    job = job_of(decode(tf_job()))
    assert (job.invalid_reason, job.is_partial) == ("", False)


def test_invalid_job_that_has_not_started_is_not_decoded() -> None:
    found = decode(with_type(tf_job(), "Boss"), status={})
    assert found.job is None
    assert "Boss" in str(found.error)


@pytest.mark.parametrize("good", [None, tf_job()], ids=["unknown", "known"])
def test_job_with_pods_has_started_even_without_a_status(good: JSON | None) -> None:
    job = job_of(decode(with_type(tf_job(), "Boss"), status={}, good=good, has_pods=True))
    assert "Boss" in job.invalid_reason
    assert Replica("worker", 1) in job.replicas


@pytest.mark.parametrize("status", [RUNNING, OWN], ids=["another operator's", "ours"])
def test_unknown_replica_type_is_left_out(status: JSON) -> None:
    job = job_of(decode(with_type(tf_job(), "Boss"), status))
    assert set(job.replicas) == {Replica("chief", 0), Replica("worker", 0), Replica("worker", 1)}
    assert job.is_partial
    assert "Boss" in job.invalid_reason
    assert job.success_policy.success_replicas == (Replica("chief", 0),)
    assert holds_policy(job)


@pytest.mark.parametrize("status", [RUNNING, OWN], ids=["another operator's", "ours"])
def test_unknown_policy_is_left_out_and_pods_are_still_created(status: JSON) -> None:
    wire = tf_job(runPolicy={**POLICY, "cleanPodPolicy": "Never", "backoffLimit": "many"})
    job = job_of(decode(wire, status))
    assert not job.is_partial
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert (job.run_policy.active_deadline_s, job.run_policy.backoff_limit) == (100, None)
    assert "cleanPodPolicy" in job.invalid_reason or "backoffLimit" in job.invalid_reason


def test_malformed_template_keeps_its_container_names() -> None:
    wire = tf_job()
    broken = wire["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    broken["metadata"] = {"labels": {"a": 1}}
    job = job_of(decode(wire))
    assert job.is_partial
    assert job.replica_count("worker") == 2
    assert [spec.container for spec in job.replica_specs] == ["tensorflow"] * 2


def test_last_valid_spec_is_used_with_the_current_run_policy() -> None:
    good = tf_job()
    bad = with_type(tf_job(runPolicy={"suspend": True}), "Boss")
    job = job_of(decode(bad, good=good))
    assert not job.is_partial
    assert job.run_policy.suspended
    assert job.run_policy.active_deadline_s is None
    assert "Boss" in job.invalid_reason


def test_malformed_suspend_does_not_resume_a_suspended_job() -> None:
    suspended = {**RUNNING, "dlctl": {"phase": "Suspended", "observedGeneration": 1}}
    wire = tf_job(runPolicy={"suspend": "maybe"})
    assert job_of(decode(wire, suspended)).run_policy.suspended
    assert not job_of(decode(wire)).run_policy.suspended


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="null"),
        pytest.param("nonsense", id="a string"),
        pytest.param([], id="a list"),
        pytest.param({"tfReplicaSpecs": 5}, id="specs of a wrong type"),
        pytest.param({"tfReplicaSpecs": {}}, id="no specs"),
        pytest.param({"tfReplicaSpecs": {"Boss": None}}, id="only unknown types"),
    ],
)
def test_undecodable_job_keeps_its_status(spec: Any) -> None:
    job = job_of(decode(manifest("kubeflow.org/v1", "TFJob", spec)))
    assert (tuple(job.replicas), job.is_partial) == ((), True)
    assert job.status.phase is JobPhase.RUNNING
    assert job.invalid_reason


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(mxjob(terminationPolicy={"chief": {"replicaIndex": "x"}}), id="list"),
        pytest.param({**bare_job(), "spec": [{"replicaType": "BOSS"}]}, id="bare list"),
        pytest.param(
            manifest("kai.alibabacloud.com/v1alpha1", "TrainingJob", {"etReplicaSpecs": {}}),
            id="TrainingJob",
        ),
        pytest.param(training_job("MPIJob", Worker=1), id="MPIJob without a launcher"),
        pytest.param(training_job("PyTorchJob", Boss=1), id="PyTorchJob"),
    ],
)
def test_every_kind_can_be_decoded_in_part(wire: JSON) -> None:
    status = {**OWN, "phase": "Running", "state": "Running"}
    job = job_of(decode(wire, status))
    assert job.is_partial
    assert job.status.phase is JobPhase.RUNNING


def test_reading_in_part_does_not_change_the_decoded_spec() -> None:
    wire = with_type(tf_job(), "Boss")
    obj = decoded({**wire, "status": OWN})
    assert decode_job(kind_of("kubeflow.org/v1", "TFJob"), obj).error is not None
    assert obj.spec == wire["spec"]


class Malicious(Kind):
    """A kind whose decoding fails with an unforeseen error."""

    def read(self, obj: DecodedObject) -> Job:
        raise RecursionError("deep")


def test_any_error_of_decoding_becomes_a_content_error() -> None:
    kind = kind_of("kubeflow.org/v1", "TFJob")
    strange = Malicious(kind.resource, kind.dialects)
    new = decode_job(strange, decoded(tf_job()))
    assert new.job is None
    assert isinstance(new.error, ContentError)
    assert "RecursionError: deep (reconcilers/job/test_decoding.py:" in str(new.error)

    begun = decode_job(strange, decoded({**tf_job(), "status": OWN}))
    assert holds_policy(job_of(begun))
    assert job_of(begun).is_partial


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"maxRestarts": "many"}, id="maximum"),
        pytest.param({"maxRestarts": 3, "rules": [{"action": "Retry"}]}, id="action"),
        pytest.param({"maxRestarts": 3, "rules": [{"onCauses": ["Node"]}]}, id="no action"),
    ],
)
@pytest.mark.parametrize("is_good_known", [True, False], ids=["after another spec", "at start"])
def test_job_waits_while_its_failure_policy_cannot_be_read(
    broken: JSON, is_good_known: bool
) -> None:
    wire = tf_job(runPolicy={"failurePolicy": broken})
    good = tf_job(runPolicy={"failurePolicy": {"maxRestarts": 3}}) if is_good_known else None
    job = job_of(decode(wire, good=good))
    assert job.is_partial
    assert job.run_policy.failure_policy is not None


def test_job_whose_other_policies_cannot_be_read_does_not_wait() -> None:
    policy = {"failurePolicy": {"maxRestarts": 3}, "ttlSecondsAfterFinished": "long"}
    job = job_of(decode(tf_job(runPolicy=policy)))
    assert not job.is_partial
    assert job.run_policy.failure_policy is not None
    assert job.run_policy.failure_policy.max_restarts == 3


def test_failure_policy_that_was_removed_is_not_waited_for() -> None:
    good = tf_job(runPolicy={"failurePolicy": {"maxRestarts": 3}})
    job = job_of(decode(tf_job(runPolicy={"ttlSecondsAfterFinished": "long"}), good=good))
    assert not job.is_partial
    assert job.run_policy.failure_policy is None


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("maxRestarts: 3", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param('{"maxRestarts": "many"}', id="maximum"),
        pytest.param('{"maxRestarts": 3, "rules": [{"action": "Retry"}]}', id="action"),
    ],
)
@pytest.mark.parametrize("is_good_known", [True, False], ids=["after another spec", "at start"])
def test_job_whose_annotation_cannot_be_read_keeps_its_spec(
    broken: str, is_good_known: bool
) -> None:
    found = decode_annotated(bare_job(scheduler=1, worker=2), broken, is_good_known=is_good_known)
    job = job_of(found)
    assert set(job.replicas) == {
        Replica("scheduler", 0),
        Replica("worker", 0),
        Replica("worker", 1),
    }
    assert job.success_policy.success_replicas == (Replica("scheduler", 0),)
    assert job.is_partial
    assert ANNOTATION in job.invalid_reason
    # That there is one is known, so no failure is decided without it.
    assert job.run_policy.failure_policy == FailurePolicy()
    assert found.obj.metadata.annotations == {ANNOTATION: broken}


@pytest.mark.parametrize("is_good_known", [True, False], ids=["after another spec", "at start"])
def test_template_and_annotation_can_both_be_invalid(is_good_known: bool) -> None:
    wire = bare_job(scheduler=1, worker=2)
    wire["spec"][1]["template"]["metadata"] = {"labels": {"a": 1}}
    job = job_of(decode_annotated(wire, "oops", is_good_known=is_good_known))
    assert job.total_replicas == 3
    assert job.is_partial
    assert job.run_policy.failure_policy == FailurePolicy()


def decode_annotated(wire: JSON, policy: str, *, is_good_known: bool) -> DecodedJob:
    wire["metadata"]["annotations"] = {ANNOTATION: policy}
    good = bare_job(scheduler=1, worker=2) if is_good_known else None
    return decode(wire, {**RUNNING, "phase": "Running", "state": "Running"}, good)
