"""Why a replica has no log."""

import pytest

from dlctl.cli.display.progress import ReplicaProgress
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.logs import no_log_reasons
from tests.builders import training_job
from tests.cli.jobs.outcomes import at, lost_gang, snapshot

GONE = "has no pod any more, and its output went with it"


def ended_job(policy: str) -> JobSnapshot:
    wire = training_job("PyTorchJob", "sum", Master=1, Worker=2)
    wire["spec"]["runPolicy"] = {"cleanPodPolicy": policy}
    return snapshot(wire, completionTime=at(60), dlctl={"phase": "Done"})


def reasons(job: JobSnapshot, replica: str) -> list[str]:
    return list(no_log_reasons(job, [ReplicaProgress(replica, "worker")], set()))


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


def test_output_of_the_first_cause_is_in_the_status() -> None:
    job = lost_gang().job
    verdict = job.status.attempts[-1].verdict
    assert verdict is not None
    name = verdict.replica
    assert reasons(job, name) == [f"{name} {GONE}; `dlctl why {job}` has the end of it"]
