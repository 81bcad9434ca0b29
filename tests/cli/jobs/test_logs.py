"""Why a replica has no log."""

import datetime
from typing import Any

import pytest

from dlctl.cli.display.replica_progress import ReplicaProgress
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.log_streams import PodLogOptions
from dlctl.cli.jobs.logs import no_log_reasons
from tests.builders import training_job
from tests.cli.jobs.outcomes import at, snapshot

GONE = "has no pod any more, and its output went with it"


def ended_job(policy: str, **own: Any) -> JobSnapshot:
    wire = training_job("PyTorchJob", "sum", Master=1, Worker=2)
    wire["spec"]["runPolicy"] = {"cleanPodPolicy": policy}
    return snapshot(wire, completionTime=at(60), dlctl={"phase": "Done", **own})


def reasons(job: JobSnapshot, replica: str) -> list[str]:
    return list(no_log_reasons(job, [ReplicaProgress(replica, "worker")], set(), PodLogOptions()))


@pytest.mark.parametrize(
    ("policy", "advice"),
    [
        ("All", "; `cleanPodPolicy: None` keeps the pods of jobs that have ended"),
        # Deleted all the same, as when it would have been restarted without end.
        ("None", ""),
    ],
)
def test_pods_are_kept_by_a_policy_that_the_job_does_not_have_yet(policy: str, advice: str) -> None:
    assert reasons(ended_job(policy), "worker-0") == [f"worker-0 {GONE}{advice}"]


def test_output_that_the_status_may_not_have_is_not_promised() -> None:
    verdict = {
        "cause": "UserCode",
        "confidence": "Low",
        "message": "exit code 1: general error",
        "replica": "worker-0",
        "time": at(60),
    }
    attempt = {"number": 0, "startTime": at(0), "endTime": at(60), **verdict}
    job = ended_job("All", attempts=[attempt])
    advice = "`cleanPodPolicy: None` keeps the pods of jobs that have ended"
    assert reasons(job, "worker-1") == [f"worker-1 {GONE}; {advice}"]
    assert reasons(job, "worker-0") == [
        f"worker-0 {GONE}; `dlctl why {job}` says why it ended; {advice}"
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(PodLogOptions(), ["worker-0 has written nothing"], id="all"),
        pytest.param(PodLogOptions(tail=5), ["worker-0 has written nothing"], id="last lines"),
        pytest.param(PodLogOptions(tail=0), [], id="no lines"),
        pytest.param(
            PodLogOptions(since_s=5), ["worker-0 has written nothing since then"], id="recent"
        ),
    ],
)
def test_only_a_log_that_was_read_in_full_is_said_to_be_empty(
    options: PodLogOptions, expected: list[str]
) -> None:
    started = datetime.datetime.fromisoformat(at(0))
    ended = ReplicaProgress("worker-0", "worker", pod="sum-worker-0", started=started)
    assert ended.has_log
    assert list(no_log_reasons(ended_job("None"), [ended], set(), options)) == expected
