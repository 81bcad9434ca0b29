"""Pods that others delete soon after their creation are created again with a back-off."""

import itertools

from dlctl.api.meta import UID
from dlctl.reconcilers.children.recreation_backoff import RecreationBackoff

JOB = UID("uid-of-job")
NAME = "mnist-worker-0"


def create_when_due(backoff: RecreationBackoff, now_s: float) -> float:
    """Create a pod as soon as it may be; return when."""
    now_s += backoff.left_s(JOB, NAME, now_s)
    backoff.record(JOB, [NAME], now_s)
    return now_s


def test_second_pod_follows_at_once_and_others_with_a_growing_wait() -> None:
    backoff, at_s = RecreationBackoff(), [0.0]
    for _ in range(9):
        at_s.append(create_when_due(backoff, at_s[-1]))
    waits_s = [after - before for before, after in itertools.pairwise(at_s)]
    assert waits_s == [0, 0, 5, 10, 20, 40, 80, 120, 120]


def test_pod_that_lasts_starts_a_new_series() -> None:
    backoff, now_s = RecreationBackoff(), 0.0
    for _ in range(3):
        now_s = create_when_due(backoff, now_s)
    assert (now_s, backoff.left_s(JOB, NAME, now_s)) == (5, 10)
    now_s += 10 + 11
    assert create_when_due(backoff, now_s) == now_s
    assert backoff.left_s(JOB, NAME, now_s) == 0


def test_other_pods_do_not_wait() -> None:
    backoff = RecreationBackoff()
    for _ in range(5):
        create_when_due(backoff, 0)
    assert backoff.left_s(JOB, "mnist-worker-1", 0) == 0
    assert backoff.left_s(UID("of the next job of this name"), NAME, 0) == 0


def test_pods_that_dlctl_deletes_do_not_count() -> None:
    backoff = RecreationBackoff()
    for _ in range(5):
        assert create_when_due(backoff, 0) == 0
        backoff.forget(JOB, [NAME, "unknown"])


def test_pods_that_last_are_forgotten() -> None:
    backoff = RecreationBackoff()
    backoff.record(JOB, [NAME], 0)
    backoff.record(JOB, ["mnist-worker-1"], 5)
    backoff.forget_lasting(10)
    assert list(backoff._last) == [(JOB, NAME), (JOB, "mnist-worker-1")]
    backoff.forget_lasting(11)
    assert list(backoff._last) == [(JOB, "mnist-worker-1")]
