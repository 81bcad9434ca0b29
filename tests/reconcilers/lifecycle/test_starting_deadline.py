"""The deadline until which a job has to run, and the active deadline that counts from its run."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase, JobState
from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, decoded, exited, kind_of, make_job, make_pod, training_job

MASTER = Replica("master", 0)
NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available.",
}


def job_of(**policy: Any) -> Job:
    wire = training_job("PyTorchJob", Master=1)
    wire["spec"]["runPolicy"] = policy
    return make_job(wire)


def planned(job: Job, *pods: Pod, at_s: float = 0) -> Plan:
    now = NOW + datetime.timedelta(seconds=at_s)
    return plan_job(job, observe(job, Children(pods), now), Desired(), now, PlanSettings())


def applied(job: Job, plan: Plan) -> Job:
    """Return the job with the status as it is read back after it was written."""
    dialect = decoded(training_job("PyTorchJob", Master=1)).dialect
    wire = dialect.write_status(plan.status)
    obj = decoded({**training_job("PyTorchJob", Master=1), "status": wire})
    return attrs.evolve(job, status=dialect.read_status(obj))


def unscheduled(job: Job) -> Pod:
    return make_pod(job, MASTER, phase="Pending", conditions=[NO_NODE])


def test_job_that_does_not_run_in_time_fails_with_what_it_waits_for() -> None:
    job = job_of(startingDeadlineSeconds=60)
    job = applied(job, planned(job))
    early = planned(job, unscheduled(job), at_s=59)
    assert (early.status.phase, early.requeue_after_s) == (JobPhase.CREATING, 1)
    job = applied(job, early)
    late = planned(job, unscheduled(job), at_s=60).status
    assert late.state is JobState.FAILED
    assert late.failure is not None
    assert late.failure.reason == "StartingDeadlineExceeded"
    assert late.failure.message == (
        "Job linear has failed because it did not run within 60 s: master-0 waits: no node fits: "
        "0/3 nodes are available"
    )
    assert [c.type for c in late.conditions if c.status] == ["Created", "Failed"]
    verdict = late.attempts[-1].verdict
    assert verdict is not None
    assert verdict.cause is Cause.PLATFORM


def test_job_that_runs_in_time_meets_the_deadline_for_good() -> None:
    job = job_of(startingDeadlineSeconds=60)
    job = applied(job, planned(job))
    ran = planned(job, make_pod(job, MASTER, state=RUNNING), at_s=30)
    assert ran.status.first_run_time == NOW + datetime.timedelta(seconds=30)
    job = applied(job, ran)
    # Its pod is replaced, and the new one finds no node.
    assert planned(job, unscheduled(job), at_s=600).status.state is not JobState.FAILED


def test_time_in_suspension_does_not_count_and_a_resumption_starts_it_again() -> None:
    job = job_of(startingDeadlineSeconds=60)
    job = applied(job, planned(job))
    job = applied(job, planned(job, make_pod(job, MASTER, state=RUNNING), at_s=10))
    suspended = attrs.evolve(job, run_policy=attrs.evolve(job.run_policy, suspended=True))
    job = applied(job, planned(suspended, at_s=20))
    assert planned(attrs.evolve(suspended, status=job.status), at_s=900).requeue_after_s is None
    job = applied(job, planned(job, at_s=1000))
    assert (job.status.phase, job.status.first_run_time) == (JobPhase.CREATING, None)
    assert planned(job, at_s=1059).status.state is JobState.RUNNING
    assert planned(job, at_s=1060).status.state is JobState.FAILED


def test_active_deadline_counts_from_the_first_run_if_the_start_has_its_own() -> None:
    job = job_of(startingDeadlineSeconds=600, activeDeadlineSeconds=60)
    job = applied(job, planned(job))
    assert planned(job, unscheduled(job), at_s=500).status.state is JobState.RUNNING
    running = make_pod(job, MASTER, state=RUNNING)
    job = applied(job, planned(job, running, at_s=500))
    early = planned(job, running, at_s=559)
    assert (early.status.state, early.requeue_after_s) == (JobState.RUNNING, 1)
    late = planned(job, running, at_s=560).status
    assert late.failure is not None
    assert late.failure.reason == "DeadlineExceeded"


def test_success_at_the_deadline_is_a_success() -> None:
    job = job_of(startingDeadlineSeconds=60)
    job = applied(job, planned(job))
    done = make_pod(job, MASTER, phase="Succeeded", state=exited(0))
    assert planned(job, done, at_s=90).status.state is JobState.SUCCEEDED


def test_job_without_the_field_records_no_first_run() -> None:
    job = job_of()
    job = applied(job, planned(job))
    assert planned(job, make_pod(job, MASTER, state=RUNNING)).status.first_run_time is None


def refused(job: Job) -> Pod:
    """Return a pod that its node has no room for."""
    return make_pod(job, MASTER, phase="Failed", reason="OutOfcpu", restart_policy="Never")


def test_job_that_cannot_start_fails_in_time_though_it_is_restarting() -> None:
    job = job_of(startingDeadlineSeconds=60, failurePolicy={})
    job = applied(job, planned(job))
    job = applied(job, planned(job, refused(job), at_s=55))
    early = planned(job, refused(job), at_s=56)
    assert (early.status.phase, early.requeue_after_s) == (JobPhase.RESTARTING, 4)
    late = planned(job, refused(job), at_s=60)
    assert late.status.failure is not None
    assert late.status.failure.reason == "StartingDeadlineExceeded"
    failed = next(c for c in late.status.conditions if c.type == "Failed")
    assert failed.message.endswith("high confidence: its node did not have enough cpu")


def test_restart_of_a_job_that_has_run_has_no_starting_deadline() -> None:
    job = job_of(startingDeadlineSeconds=60, failurePolicy={"maxRestarts": 1})
    job = applied(job, planned(job))
    job = applied(job, planned(job, make_pod(job, MASTER, state=RUNNING), at_s=10))
    failed = make_pod(job, MASTER, phase="Failed", state=exited(1), restart_policy="Never")
    job = applied(job, planned(job, failed, at_s=55))
    assert job.status.phase is JobPhase.RESTARTING
    late = planned(job, failed, at_s=600)
    assert late.status.failure is None


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("kubeflow.org/v1", "MPIJob"),
        ("kubeflow.org/v1", "JAXJob"),
        ("fioravanzo.org/v1alpha1", "MXJob"),
        ("tensorflow.org/v1alpha1", "TfJob"),
        ("xgboostjob.kubeflow.org/v1", "XGBoostJob"),
        ("kai.alibabacloud.com/v1alpha1", "TrainingJob"),
    ],
)
def test_each_form_has_the_field(api_version: str, kind: str) -> None:
    dialect = kind_of(api_version, kind).dialects[api_version.partition("/")[2]]
    properties = dialect.spec_schema()["properties"]["runPolicy"]["properties"]
    assert properties["startingDeadlineSeconds"]["minimum"] == 1
