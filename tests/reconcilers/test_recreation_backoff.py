"""Pods that others delete soon after their creation are created again with a back-off."""

import itertools
from typing import Final

import pytest

from dlctl.api.meta import PODS, SERVICES, UID
from dlctl.reconcilers.recreation_backoff import RecreationBackoff, RecreationWait
from tests.support.timing import ManualClock

JOB: Final = UID("uid-of-job")
NAME: Final = "mnist-worker-0"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def backoff(clock: ManualClock) -> RecreationBackoff:
    return RecreationBackoff(clock)


def wait_of(backoff: RecreationBackoff, job: UID = JOB, name: str = NAME) -> RecreationWait | None:
    return backoff.waits(job, [(PODS, name), (PODS, "unknown")]).get((PODS, name))


def create_when_due(backoff: RecreationBackoff, clock: ManualClock) -> float:
    """Create a pod as soon as it may be; return when."""
    if wait := wait_of(backoff):
        clock.seconds += wait.left_s
    backoff.record(JOB, PODS, [NAME])
    return clock.seconds


def test_second_pod_follows_at_once_and_others_with_a_growing_wait(
    backoff: RecreationBackoff, clock: ManualClock
) -> None:
    at_s = [create_when_due(backoff, clock) for _ in range(10)]
    waits_s = [after - before for before, after in itertools.pairwise(at_s)]
    assert waits_s == [0, 5, 10, 20, 40, 80, 120, 120, 120]


def test_wait_says_how_many_pods_are_gone_and_since_when(
    backoff: RecreationBackoff, clock: ManualClock
) -> None:
    start = clock.now()
    for _ in range(3):
        create_when_due(backoff, clock)
    clock.seconds += 1
    assert wait_of(backoff) == RecreationWait(left_s=9, deleted=3, since=start)


def test_pod_that_lasts_starts_a_new_series(backoff: RecreationBackoff, clock: ManualClock) -> None:
    for _ in range(3):
        create_when_due(backoff, clock)
    clock.seconds += 10 + 11
    assert wait_of(backoff) is None
    backoff.record(JOB, PODS, [NAME])
    assert wait_of(backoff) is None


def test_other_children_do_not_wait(backoff: RecreationBackoff) -> None:
    for _ in range(5):
        backoff.record(JOB, PODS, [NAME])
    assert wait_of(backoff, name="mnist-worker-1") is None
    assert not backoff.waits(JOB, [(SERVICES, NAME)])
    assert wait_of(backoff, job=UID("of the next job of this name")) is None


def test_pods_that_dlctl_deletes_do_not_count(backoff: RecreationBackoff) -> None:
    for _ in range(5):
        assert wait_of(backoff) is None
        backoff.record(JOB, PODS, [NAME])
        backoff.forget(JOB, PODS, [NAME, "unknown"])


def test_pods_that_last_are_forgotten(backoff: RecreationBackoff, clock: ManualClock) -> None:
    backoff.record(JOB, PODS, [NAME])
    clock.seconds = 5
    backoff.record(JOB, PODS, ["mnist-worker-1"])
    clock.seconds = 10
    backoff.forget_lasting()
    assert list(backoff._last[PODS]) == [(JOB, NAME), (JOB, "mnist-worker-1")]
    clock.seconds = 11
    backoff.forget_lasting()
    assert list(backoff._last[PODS]) == [(JOB, "mnist-worker-1")]


def test_update_with_another_content_is_no_repetition(backoff: RecreationBackoff) -> None:
    for content in ("a", "a", "b"):
        backoff.record(JOB, PODS, ["uid"], content)
    assert not backoff.waits(JOB, [(PODS, "uid")], "b")
    backoff.record(JOB, PODS, ["uid"], "b")
    assert backoff.waits(JOB, [(PODS, "uid")], "b")
    assert not backoff.waits(JOB, [(PODS, "uid")], "a")
