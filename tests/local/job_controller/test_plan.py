"""Plans of jobs: what the controller does about a job, its pods and the time."""

import datetime
from typing import Any

import pytest

from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.job_controller.failure_backoff import NO_FAILURES, FailureRecord
from dlctl.local.job_controller.plan import JobPlan, plan_job
from dlctl.local.node.api_types import NodePod
from tests.local.job_controller.builders import NOW, ago, make_job, make_pod

TARGET = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded", "message": "m"}
MET = {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"}


def plan(job: ControlledBatchJob, *pods: NodePod, failures: FailureRecord = NO_FAILURES) -> JobPlan:
    return plan_job(job, pods, failures, NOW)


def names(pods: Any) -> list[str]:
    return [pod.metadata.name for pod in pods]


def true_conditions(planned: JobPlan) -> list[str]:
    return [each.type for each in planned.status.conditions if each.status == "True"]


def uncounted(planned: JobPlan) -> tuple[list[str], list[str]]:
    pods = planned.status.uncounted_terminated_pods
    assert pods is not None
    return list(pods.succeeded), list(pods.failed)


def test_new_job_starts_and_gets_its_pods() -> None:
    planned = plan(make_job(status={"startTime": None}, parallelism=2, completions=3))
    assert planned.create_count == 2
    assert planned.status.start_time == NOW
    assert planned.status.active == 2


def test_end_is_noted_before_the_pod_is_released_and_counted_after() -> None:
    noted = plan(make_job(), make_pod("p", "Failed", ended=5))
    assert uncounted(noted) == ([], ["p"])
    assert names(noted.release) == ["p"]
    assert noted.status.failed == 0

    status = {"uncountedTerminatedPods": {"failed": ["p"]}}
    counted = plan(make_job(status=status), make_pod("p", "Failed", tracked=False, ended=5))
    assert uncounted(counted) == ([], [])
    assert counted.release == []
    assert counted.status.failed == 1


def test_noted_pod_that_keeps_its_finalizer_is_released_again_and_noted_once() -> None:
    status = {"uncountedTerminatedPods": {"failed": ["p"]}}
    planned = plan(make_job(status=status), make_pod("p", "Failed", ended=5))
    assert uncounted(planned) == ([], ["p"])
    assert names(planned.release) == ["p"]
    assert planned.status.failed == 0


def test_counted_pod_is_gone_from_the_notes_when_it_is_gone() -> None:
    planned = plan(make_job(status={"uncountedTerminatedPods": {"succeeded": ["p"]}}))
    assert planned.status.succeeded == 1
    assert planned.create_count == 0
    assert true_conditions(planned) == ["SuccessCriteriaMet"]


def test_job_waits_for_its_back_off() -> None:
    failures = FailureRecord(2, NOW - datetime.timedelta(seconds=5))
    planned = plan(make_job(status={"failed": 2}), failures=failures)
    assert planned.create_count == 0
    assert planned.requeue_after_s == 15
    assert planned.status.active == 0


def test_earlier_deadline_wins_over_the_back_off() -> None:
    failures = FailureRecord(2, NOW - datetime.timedelta(seconds=5))
    planned = plan(make_job(status={"failed": 2}, activeDeadlineSeconds=70), failures=failures)
    assert planned.requeue_after_s == 10


@pytest.mark.parametrize(
    ("job", "pods", "reason"),
    [
        pytest.param(
            make_job(backoffLimit=1, status={"failed": 1}),
            [make_pod("p", "Failed", ended=1)],
            "BackoffLimitExceeded",
            id="one more failure",
        ),
        pytest.param(
            make_job(restart="OnFailure", backoffLimit=3),
            [make_pod("p", restarts=3)],
            "BackoffLimitExceeded",
            id="restarts",
        ),
        pytest.param(
            make_job(restart="OnFailure", backoffLimit=0),
            [make_pod("p", restarts=1)],
            "BackoffLimitExceeded",
            id="a restart where none is allowed",
        ),
        pytest.param(
            make_job(activeDeadlineSeconds=60), [make_pod("p")], "DeadlineExceeded", id="deadline"
        ),
    ],
)
def test_job_that_fails_says_so_and_deletes_its_pods(
    job: ControlledBatchJob, pods: list[NodePod], reason: str
) -> None:
    planned = plan(job, *pods)
    assert true_conditions(planned) == ["FailureTarget"]
    assert planned.status.conditions[0].reason == reason
    assert names(planned.delete) == [p.metadata.name for p in pods if not p.finished]
    assert uncounted(planned) == ([], ["p"])
    assert planned.status.active == 0


@pytest.mark.parametrize(
    ("job", "pods"),
    [
        pytest.param(
            make_job(restart="OnFailure", backoffLimit=3),
            [make_pod("p", restarts=2)],
            id="fewer restarts",
        ),
        pytest.param(
            make_job(restart="Never", backoffLimit=1), [make_pod("p", restarts=5)], id="never"
        ),
        pytest.param(make_job(activeDeadlineSeconds=61), [make_pod("p")], id="deadline to come"),
        pytest.param(make_job(suspend=True, activeDeadlineSeconds=1), [], id="suspended"),
    ],
)
def test_job_goes_on_within_its_limits(job: ControlledBatchJob, pods: list[NodePod]) -> None:
    assert "FailureTarget" not in true_conditions(plan(job, *pods))


def test_job_is_failed_once_its_pods_are_gone_and_counted() -> None:
    job = make_job(status={"conditions": [TARGET], "failed": 1})
    waiting = plan(job, make_pod("p", terminating=True, tracked=False))
    assert true_conditions(waiting) == ["FailureTarget"]
    ended = plan(job)
    assert true_conditions(ended) == ["FailureTarget", "Failed"]
    assert [(event.type, event.reason) for event in ended.events] == [
        ("Warning", "DeadlineExceeded")
    ]
    assert ended.status.completion_time is None


def test_success_is_never_taken_back() -> None:
    job = make_job(status={"conditions": [MET], "succeeded": 1}, activeDeadlineSeconds=1)
    planned = plan(job, make_pod("late"))
    assert true_conditions(planned) == ["SuccessCriteriaMet"]
    assert names(planned.delete) == ["late"]
    assert uncounted(planned) == ([], [])
    done = plan(job)
    assert true_conditions(done) == ["SuccessCriteriaMet", "Complete"]
    assert done.status.completion_time == ago(0)


def test_suspension_deletes_pods_without_counting_them_and_forgets_the_start() -> None:
    planned = plan(make_job(suspend=True), make_pod("p"))
    assert names(planned.delete) == ["p"]
    assert planned.forget_deleted
    assert uncounted(planned) == ([], [])
    assert planned.status.start_time is None
    assert (planned.status.active, planned.status.terminating) == (0, 1)
    assert [event.reason for event in planned.events] == ["Suspended"]


def test_job_without_completions_to_reach_is_complete_even_while_suspended() -> None:
    planned = plan(make_job(suspend=True, completions=0))
    assert true_conditions(planned) == ["SuccessCriteriaMet"]


@pytest.mark.parametrize(
    ("policy", "created", "failed"),
    [
        pytest.param("TerminatingOrFailed", 1, ["p"], id="at once"),
        pytest.param("Failed", 0, [], id="once it has ended"),
    ],
)
def test_terminating_pod_is_replaced(policy: str, created: int, failed: list[str]) -> None:
    gone_by = FailureRecord(1, NOW - datetime.timedelta(seconds=20))
    status = {"uncountedTerminatedPods": {"failed": failed}}
    job = make_job(podReplacementPolicy=policy, status=status)
    planned = plan(job, make_pod("p", terminating=True), failures=gone_by)
    assert planned.create_count == created
    assert uncounted(planned) == ([], failed)


def test_pods_that_have_come_the_least_far_are_surplus() -> None:
    pods = [make_pod("runs"), make_pod("waits", "Pending"), make_pod("also")]
    planned = plan(make_job(parallelism=1, completions=5), *pods)
    assert names(planned.delete)[0] == "waits"
    assert len(planned.delete) == 2


def test_newest_of_pods_that_have_come_equally_far_are_surplus() -> None:
    pods = [make_pod("old", created=90), make_pod("new", created=10), make_pod("oldest")]
    planned = plan(make_job(parallelism=1, completions=5), *pods)
    assert names(planned.delete) == ["new", "old"]


def test_job_that_is_being_deleted_releases_its_pods_and_creates_none() -> None:
    planned = plan(make_job(deleted=True, parallelism=2, completions=2), make_pod("p"))
    assert planned.create_count == 0
    assert names(planned.release) == ["p"]
    assert uncounted(planned) == ([], [])


def test_nothing_changes_while_all_pods_run() -> None:
    status = {
        "active": 1,
        "ready": 1,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    job = make_job(status=status)
    planned = plan(job, make_pod())
    assert planned.status == job.status
    changes = (planned.create_count, planned.delete, planned.release, planned.events)
    assert not any(changes)
    assert planned.requeue_after_s is None
