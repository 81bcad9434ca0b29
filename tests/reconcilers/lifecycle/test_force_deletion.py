"""Which terminating pods are force-deleted, and when the next one is due."""

from typing import Any

import pytest

from dlctl.api.job import Replica
from dlctl.api.pods import Pod
from dlctl.reconcilers.lifecycle.force_deletion import ForceDeletions, force_deletions
from tests.builders import NOW, RUNNING, make_job, make_pod

JOB = make_job()


def terminating(since_s: float, *, index: int = 0, **meta: Any) -> Pod:
    """Return a pod whose deletion timestamp is this many seconds ago."""
    gone_by = NOW.timestamp() - since_s
    stamp = NOW.fromtimestamp(gone_by, NOW.tzinfo).isoformat()
    metadata = {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 30, **meta}
    return make_pod(JOB, Replica("worker", index), state=RUNNING, metadata=metadata)


def test_pod_that_is_not_terminating_is_not_force_deleted() -> None:
    staying = make_pod(JOB, JOB.success_policy.success_replicas[0], state=RUNNING)
    assert force_deletions([staying], NOW, 60) == ForceDeletions()


def test_without_the_setting_no_pod_is_force_deleted() -> None:
    assert force_deletions([terminating(1e6)], NOW, 0) == ForceDeletions()


@pytest.mark.parametrize(
    ("since_s", "next_s"),
    [
        pytest.param(-30, 90, id="within its grace period"),
        pytest.param(0, 60, id="grace period just over"),
        pytest.param(59, 1, id="nearly"),
    ],
)
def test_pod_is_not_force_deleted_before_grace_period_and_setting(
    since_s: float, next_s: float
) -> None:
    assert force_deletions([terminating(since_s)], NOW, 60) == ForceDeletions((), next_s)


@pytest.mark.parametrize("since_s", [60, 61, 1e6])
def test_pod_past_its_time_is_force_deleted(since_s: float) -> None:
    pod = terminating(since_s)
    assert force_deletions([pod], NOW, 60) == ForceDeletions((pod,))


def test_next_force_deletion_is_the_earliest() -> None:
    pods = [terminating(20, index=0), terminating(100, index=1), terminating(50, index=2)]
    assert force_deletions(pods, NOW, 60) == ForceDeletions((pods[1],), 10)


def test_pod_with_finalizers_and_grace_left_is_force_deleted() -> None:
    pod = terminating(100, finalizers=["a.b/c"])
    assert force_deletions([pod], NOW, 60).pods == (pod,)


def test_pod_kept_only_by_finalizers_is_not_force_deleted() -> None:
    pod = terminating(100, finalizers=["a.b/c"], deletionGracePeriodSeconds=0)
    assert force_deletions([pod], NOW, 60) == ForceDeletions()


def test_pod_that_nothing_keeps_is_deleted_again() -> None:
    pod = terminating(100, deletionGracePeriodSeconds=0)
    assert force_deletions([pod], NOW, 60).pods == (pod,)
