"""Attempts and verdicts as lines."""

import datetime

from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict, last_verdict
from dlctl.cli.jobs.attempt_lines import attempt_lines, verdict_lines
from dlctl.cli.jobs.tables import job_table
from tests.builders import NOW
from tests.cli.jobs.outcomes import lost_gang

KILLED = Verdict(
    Cause.OUT_OF_MEMORY,
    Confidence.HIGH,
    "out of memory: the container's limit was reached",
    NOW,
    replica="worker-1",
    pod="sum-worker-1",
    node="n2",
    rank=2,
    exit_code=137,
    collateral=("master-0", "worker-0"),
    collateral_count=7,
)


def at(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def test_verdict_names_the_replica_the_cause_and_the_collateral() -> None:
    said = "out of memory: the container's limit was reached (exit code 137, out of memory)"
    assert list(verdict_lines(KILLED)) == [
        f"worker-1 (rank 2, node n2): {said}",
        "cause: OutOfMemory, high confidence; pod sum-worker-1",
        "ended with it: master-0, worker-0 and 5 more",
    ]


def test_attempts_show_how_long_they_ran_and_what_they_cost() -> None:
    attempts = [Attempt(0, NOW, at(60), KILLED, 8, lost_s=15), Attempt(1, at(75))]
    assert list(attempt_lines(attempts, at(105))) == [
        "0: ran 60s, ended by OutOfMemory, worker-1 (rank 2, node n2), ran again after 15s",
        "1: runs for 30s",
    ]
    assert last_verdict(attempts) == KILLED


def test_replica_that_reports_a_hang_is_not_named_as_the_one_that_hangs() -> None:
    message = "RuntimeError: Timed out waiting 4000ms for recv operation to complete"
    hang = Verdict(Cause.HANG, Confidence.LOW, message, NOW, "master-0", rank=0, exit_code=1)
    first, *_ = verdict_lines(hang)
    assert first == f"master-0 (rank 0) gave up waiting: {message} (exit code 1, probably hang)"
    assert hang.describe(message) == "Hang, noticed by master-0 (rank 0), low confidence"
    line, _ = attempt_lines([Attempt(0, NOW, at(60), hang), Attempt(1, at(75))], at(105))
    assert line == "0: ran 60s, ended by Hang, noticed by master-0 (rank 0)"


def test_single_attempt_is_not_listed() -> None:
    assert list(attempt_lines([Attempt(0, NOW, at(60), KILLED)], at(60))) == []


def test_wide_table_shows_the_cause_of_a_failure() -> None:
    _, row = job_table([lost_gang().job], NOW, wide=True, namespaces=False)
    cause = "worker-1 (rank 2, node node-a): ValueError: the loss is not finite"
    assert f"{cause} (exit code 1, user code)" in row
