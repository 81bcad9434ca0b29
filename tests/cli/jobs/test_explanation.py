"""What ``dlctl why`` prints. ``python -m tests.cli.jobs.test_explanation`` rewrites the files."""

import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dlctl.api.meta import ObjectMeta
from dlctl.cli.jobs.explanation import explain, first_failure
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from tests.builders import NOW, bare_job
from tests.cli.jobs.outcomes import (
    BEGIN,
    CREATED,
    RUNNING,
    SITUATIONS,
    Situation,
    at,
    condition,
    ended,
    event,
    failed,
    lost_gang,
    parameter_server_left,
    pod,
    running,
    snapshot,
)

FOLDER = Path(__file__).parents[2] / "golden" / "why"


def why(situation: Situation) -> str:
    lines = explain(situation.job, situation.pods, situation.events, NOW, situation.output)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", SITUATIONS)
def test_explanation_of_a_situation_is_the_expected_one(name: str) -> None:
    assert why(SITUATIONS[name]()) == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("state", "created", "replaced"),
    [
        pytest.param(running(61), 60, True, id="successor"),
        pytest.param(running(60), 59, True, id="successor of the same second"),
        pytest.param(running(1), 1, False, id="pod that is about to go"),
        pytest.param(ended(1, 59, 59), 59, False, id="pod of one second"),
    ],
)
def test_output_of_another_pod_of_its_name_is_not_that_of_the_first_failure(
    state: dict[str, Any], created: int, replaced: bool
) -> None:
    job, name = lost_gang().job, "worker-1"
    found = pod(job, name, state=state, metadata={"creationTimestamp": at(created)})
    failure = first_failure(job, [found])
    assert failure is not None
    assert (failure.pod, failure.is_replaced) == (found.metadata.name, replaced)


def test_log_of_a_pod_that_is_gone_is_not_pointed_to() -> None:
    situation = failed()
    assert "--replica worker-1" in why(situation)
    assert "--replica worker-1" not in why(Situation(situation.job, situation.pods[:2]))


@pytest.mark.parametrize(
    ("state", "previous"),
    [
        pytest.param(running(62), True, id="restarted"),
        pytest.param(ended(137, 62, 70), True, id="restarted and killed"),
        pytest.param({"waiting": {"reason": "CrashLoopBackOff"}}, False, id="to be restarted"),
    ],
)
def test_output_of_the_first_failure_is_that_of_its_run(
    state: dict[str, Any], *, previous: bool
) -> None:
    job = snapshot(conditions=[CREATED, RUNNING])
    failure = first_failure(job, [pod(job, "worker-0", state=state, last_state=ended(7, 2, 60))])
    assert failure is not None
    assert (failure.message[:11], failure.previous) == ("exit code 7", previous)


def test_of_a_long_history_the_beginning_and_the_end_are_shown() -> None:
    job = snapshot(conditions=[CREATED])
    events = [event("Strange", 1 + n % 60, f"number {n:04}") for n in range(6000)]
    said = why(Situation(job, events=events))
    assert "the job was created" in said
    assert "... 5901 more ..." in said
    assert "number 5999" in said
    assert len(said.splitlines()) < 110


def test_pods_that_the_clean_up_deletes_are_not_called_kept() -> None:
    left = parameter_server_left()
    assert "Still running" in why(left)
    spec = {**left.job.manifest["spec"], "runPolicy": {"cleanPodPolicy": "Running"}}
    job = JobSnapshot.of(left.job.kind, {**left.job.manifest, "spec": spec})
    assert "Still running" not in why(Situation(job, left.pods))
    deleted = {"deletionTimestamp": at(40)}
    leaving = pod(left.job, "ps-0", state=running(2), metadata=deleted)
    assert "Still running" not in why(Situation(left.job, (leaving, *left.pods[1:])))
    metadata = {**left.job.manifest["metadata"], "deletionTimestamp": at(40)}
    deleting = JobSnapshot.of(left.job.kind, {**left.job.manifest, "metadata": metadata})
    assert "Still running" not in why(Situation(deleting, left.pods))


def test_pod_in_which_only_a_sidecar_is_left_is_not_called_kept() -> None:
    # The policy Running would keep it, too.
    left = parameter_server_left()
    sidecar = {"name": "proxy", "restartCount": 0, "state": running(2)}
    trained = {"name": "tensorflow", "restartCount": 0, "state": ended(0, 2, 30)}
    half = pod(left.job, "worker-0", containerStatuses=[trained, sidecar])
    assert "Still running" not in why(Situation(left.job, (half,)))


def test_form_without_a_field_for_the_clean_up_names_what_deletes_the_pods() -> None:
    job = snapshot(
        bare_job("TFJob", "sum", ps=1, worker=1),
        conditions=[CREATED, condition("Succeeded", 30, "TFJob ml/sum successfully completed.")],
        completionTime=at(30),
        phase="Done",
    )
    assert job.is_decided
    shown = why(Situation(job, (pod(job, "ps-0", state=running(2)),)))
    assert "ps-0: pods stay until the job is deleted" in shown
    assert "runPolicy" not in shown


def test_event_that_repeats_what_a_pod_shows_is_left_out() -> None:
    assert "ExitedWithCode" not in why(failed())


def test_event_about_a_pod_that_is_gone_is_kept() -> None:
    situation = failed()
    text = why(Situation(situation.job, situation.pods[:2], situation.events))
    assert "ExitedWithCode: Pod: ml.sum-worker-1 exited with code 1" in text


@pytest.mark.parametrize(
    ("reason", "warning"),
    [
        pytest.param("FailedScheduling", "0/1 nodes are available: 1 Insufficient gpu.", id="dot"),
        pytest.param("Failed", 'Error: configmap "missing" not found', id="prefix"),
    ],
)
@pytest.mark.parametrize("reported", [True, False])
def test_warning_that_the_condition_repeats_is_shown_once(
    reason: str, warning: str, *, reported: bool
) -> None:
    text = warning.removeprefix("Error: ").rstrip(".")
    waiting = condition("Waiting", 5, f"master-0 waits: no start: {text}")
    job = snapshot(conditions=[CREATED, waiting] if reported else [CREATED], startTime=at(0))
    pods = [pod(job, name, phase="Pending") for name in ("master-0", "worker-0", "worker-1")]
    warned = event(reason, 4, warning, pod="sum-master-0", type_="Warning")
    shown = why(Situation(job, pods, [warned]))
    assert shown.count(text) == 1
    assert ("Waiting: PyTorchJobWaiting\n" if reported else f"master-0: {reason}\n") in shown


def test_condition_that_got_another_reason_happened_when_it_did() -> None:
    suspended = {**condition("Waiting", 10, "the job is on hold"), "lastUpdateTime": at(40)}
    shown = why(Situation(snapshot(conditions=[CREATED, suspended], startTime=at(0))))
    assert "+40s  Waiting: " in shown


def test_pod_that_cannot_be_created_is_named_once() -> None:
    refused = 'Pod "sum-master-0" is invalid: spec.containers[0].env[0].name: Invalid value: "="'
    job = snapshot(
        conditions=[CREATED, condition("Failed", 1, f"spec: {refused}")],
        completionTime=at(1),
        dlctl={"phase": "Failed"},
    )
    event_ = event("FailedCreatePod", 1, f"Error creating: {refused}", type_="Warning")
    assert why(Situation(job, events=[event_])).count(refused) == 1


def test_failure_of_the_job_as_a_whole_is_named_once() -> None:
    text = "Job sum has failed because it was active longer than specified deadline"
    verdict = {"cause": "Deadline", "confidence": "High", "message": text, "time": at(60)}
    attempt = {"number": 0, "startTime": at(1), "endTime": at(60), "worldSize": 3, **verdict}
    job = snapshot(
        conditions=[CREATED, condition("Failed", 60, text)],
        startTime=at(0),
        completionTime=at(60),
        dlctl={
            "phase": "Done",
            "failure": {"replica": "", "pod": "", "reason": "", "message": text, "time": at(60)},
            "attempts": [attempt],
        },
    )
    shown = why(Situation(job))
    assert shown.count(text) == 1
    assert "Failed: PyTorchJobFailed\n" in shown


def test_event_that_repeats_a_condition_is_left_out_whatever_its_text() -> None:
    text = "Job sum has failed because it has reached maxRestarts, 1. First cause: ValueError: bad"
    job = snapshot(conditions=[CREATED, condition("Failed", 60, text)], completionTime=at(60))
    assert "PyTorchJobFailed" not in why(
        Situation(job, events=[event("PyTorchJobFailed", 60, text)])
    )


def test_last_failure_of_a_job_that_ends_with_it_is_not_called_restarted() -> None:
    record = {"consecutiveEnds": 1, "exitCode": 1, "reason": "Error", "finishedAt": at(60)}
    job = snapshot(
        conditions=[CREATED, condition("Failed", 60, "Job sum has reached maxRestarts, 1")],
        completionTime=at(60),
        dlctl={"phase": "Done", "restarts": {"worker-1": record}},
    )
    assert "worker-1: exit code 1 (general error), Error\n" in why(Situation(job))


@pytest.mark.parametrize(
    ("failures", "consecutive_ends", "shown"),
    [
        pytest.param(30, 1, 30, id="the last after a long run"),
        pytest.param(0, 2, 2, id="evictions, which are no failures"),
    ],
)
def test_restarts_of_a_replica_include_those_before_a_long_run(
    failures: int, consecutive_ends: int, shown: int
) -> None:
    record = {"reason": "Error", "finishedAt": at(60)}
    counts = {"failures": failures, "consecutiveEnds": consecutive_ends}
    job = snapshot(conditions=[CREATED, RUNNING], dlctl={"restarts": {"worker-1": record | counts}})
    assert f"worker-1: {shown}; the last after Error" in why(Situation(job))


@pytest.mark.parametrize(
    ("uid", "shown"),
    [
        pytest.param("uid-of-worker-1", 3, id="recorded with its end"),
        pytest.param("uid-of-its-predecessor", 4, id="yet to be recorded"),
    ],
)
def test_restart_in_place_counts_once(uid: str, shown: int) -> None:
    record = {"failures": 3, "consecutiveEnds": 1, "finishedAt": at(59), "podUID": uid}
    job = snapshot(conditions=[CREATED, RUNNING], dlctl={"restarts": {"worker-1": record}})
    end = ended(1, 2, 59)
    found = pod(job, "worker-1", phase="Failed", state=end, last_state=end)
    assert f"worker-1: {shown}; the last after" in why(Situation(job, [found]))


def test_end_of_a_program_that_several_report_is_one_line() -> None:
    end = {"exitCode": 1, "reason": "Error"}
    message = "exit code 1: KeyError: 'x'"
    failure = {"replica": "worker-1", "pod": "sum-worker-1", "message": message, "time": at(59)}
    job = snapshot(
        conditions=[CREATED, condition("Failed", 60, "PyTorchJob sum is failed.")],
        completionTime=at(60),
        dlctl={
            "phase": "Done",
            "failure": {**failure, **end},
            "restarts": {"worker-1": {"consecutiveEnds": 1, "finishedAt": at(59), **end}},
        },
    )
    pods = [pod(job, "worker-1", phase="Failed", state=ended(1, 2, 59))]
    shown = why(Situation(job, pods))
    ends = [line for line in shown.splitlines() if "+59s" in line]
    assert ends == ["  11:59:29    +59s  worker-1: exit code 1: KeyError: 'x'"]


def test_refusal_of_the_status_is_shown_once_when_a_pod_is_missing() -> None:
    refused = "the status of pytorchjob sum is invalid: failed rule"
    job = snapshot(conditions=[CREATED, RUNNING])
    events = [event("StatusRejected", 5, refused, type_="Warning")]
    shown = why(Situation(job, [pod(job, "master-0", state=running(1))], events))
    assert shown.count(refused) == 1


@pytest.mark.parametrize("year", [1, 9999])
def test_event_of_an_impossible_time_happened_when_it_was_created(year: int) -> None:
    created = BEGIN + datetime.timedelta(seconds=5)
    stated = created.replace(year=year)
    wrong = msgspec.structs.replace(
        event("Strange", 5, "from elsewhere"),
        metadata=ObjectMeta(name="strange", creation_timestamp=created),
        first_timestamp=stated,
        last_timestamp=stated,
    )
    assert "     +5s  Strange: from elsewhere" in why(Situation(snapshot(), events=[wrong]))
    assert wrong.last >= created


def test_job_without_status_and_pods_can_be_explained() -> None:
    assert why(Situation(snapshot())).startswith("pytorchjob/sum in namespace ml: New")


def test_job_with_pods_has_a_controller_even_without_a_status() -> None:
    text = why(Situation(snapshot(), [pod(snapshot(), "master-0", state=running(1))]))
    assert "none has taken the job up" not in text
    assert "worker-0" in text


def test_job_with_pods_and_no_status_for_long_lacks_a_controller() -> None:
    text = why(Situation(snapshot(), [pod(snapshot(), "master-0", state=running(1))]))
    assert "none has given it a status, though it has pods, in 90s" in text


def test_job_whose_status_is_refused_has_a_controller() -> None:
    refused = "the status of pytorchjob sum is invalid: failed rule"
    text = why(Situation(snapshot(), events=[event("StatusRejected", 5, refused, type_="Warning")]))
    assert f"its first status: {refused}" in text
    assert "none has taken the job up" not in text


def test_refusal_of_a_later_status_is_what_a_job_waits_for() -> None:
    refused = "the status of pytorchjob sum is invalid: failed rule"
    job = snapshot(conditions=[CREATED, RUNNING])
    pods = [pod(job, "master-0", state=running(1))]
    events = [event("SuccessfulCreatePod", 1, "Created pods"), event("StatusRejected", 5, refused)]
    assert f"its next status: {refused}" in why(Situation(job, pods, events))
    events.append(event("PyTorchJobRestarting", 9, "it is restarting"))
    assert "its next status" not in why(Situation(job, pods, events))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for situation_name, situation_of in SITUATIONS.items():
        (FOLDER / f"{situation_name}.txt").write_text(why(situation_of()))
