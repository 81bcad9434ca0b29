"""The wait before the next pod: it grows with each failure, and a success resets it."""

import pytest

from dlctl.local.job_controller.failure_backoff import NO_FAILURES, FailureRecord
from tests.local.job_controller.builders import NOW, make_pod


@pytest.mark.parametrize(
    ("count", "wait_s"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (50, 600)]
)
def test_wait_doubles_up_to_ten_minutes(count: int, wait_s: float) -> None:
    failures = FailureRecord(count, NOW if count else None)
    assert failures.remaining_s(NOW) == wait_s


def test_failures_add_up_and_the_last_one_counts() -> None:
    first = NO_FAILURES.after([], [make_pod("a", "Failed", ended=30)])
    pods = [make_pod("b", "Failed", ended=5), make_pod("c", "Failed", ended=8)]
    assert first.after([], pods) == FailureRecord(3, first.after([], pods).last)
    assert first.after([], pods).remaining_s(NOW) == 35


def test_only_failures_after_the_last_success_count() -> None:
    before = NO_FAILURES.after([], [make_pod("a", "Failed", ended=30)])
    assert before.after([make_pod("b", "Succeeded", ended=1)], []) == NO_FAILURES
    failed = [make_pod("c", "Failed", ended=9), make_pod("d", "Failed", ended=3)]
    after = before.after([make_pod("e", "Succeeded", ended=5)], failed)
    assert (after.count, after.remaining_s(NOW)) == (1, 7)


def test_nothing_new_changes_nothing() -> None:
    failures = FailureRecord(3, NOW)
    assert failures.after([], []) == failures


def test_pod_without_end_counts_from_its_creation() -> None:
    failures = NO_FAILURES.after([], [make_pod("a", "Failed")])
    assert failures.remaining_s(NOW) == 0
    assert failures.count == 1
