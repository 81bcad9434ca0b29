"""Which terminating pods are force-deleted, and when the next one is due."""

import datetime
from typing import Any

import pytest

from dlctl.api.job import Replica
from dlctl.api.objects.pods import Pod
from dlctl.reconcilers.lifecycle.force_deletion import ForceDeletions, force_deletions
from dlctl.reconcilers.nodes.node_states import LostNode
from tests.builders import NOW, RUNNING, make_job, make_pod

JOB = make_job()


def terminating(since_s: float, *, index: int = 0, node_name: str = "", **meta: Any) -> Pod:
    """Return a pod whose deletion timestamp is this many seconds ago."""
    gone_by = NOW.timestamp() - since_s
    stamp = NOW.fromtimestamp(gone_by, NOW.tzinfo).isoformat()
    metadata = {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 30, **meta}
    return make_pod(
        JOB, Replica("worker", index), state=RUNNING, metadata=metadata, node_name=node_name
    )


def lost(*, silent_s: float | None = None, out_of_service: bool = False) -> LostNode:
    since = None if silent_s is None else NOW - datetime.timedelta(seconds=silent_s)
    return LostNode(out_of_service, since)


def test_pod_that_is_not_terminating_is_not_force_deleted() -> None:
    staying = make_pod(JOB, JOB.success_policy.success_replicas[0], state=RUNNING)
    assert force_deletions([staying], NOW, 60) == ForceDeletions()


def test_without_the_setting_no_pod_is_force_deleted() -> None:
    assert force_deletions([terminating(1e6)], NOW, 0) == ForceDeletions()


@pytest.mark.parametrize(
    ("since_s", "requeue_after_s"),
    [
        pytest.param(-30, 90, id="within its grace period"),
        pytest.param(0, 60, id="grace period just over"),
        pytest.param(59, 1, id="nearly"),
    ],
)
def test_pod_is_not_force_deleted_before_grace_period_and_setting(
    since_s: float, requeue_after_s: float
) -> None:
    assert force_deletions([terminating(since_s)], NOW, 60) == ForceDeletions((), requeue_after_s)


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


@pytest.mark.parametrize("after_s", [0, 60])
def test_pods_on_a_node_out_of_service_are_force_deleted_at_once(after_s: float) -> None:
    pods = [terminating(-30, index=index, node_name="off") for index in range(3)]
    nodes = {"off": lost(out_of_service=True)}
    assert force_deletions(pods, NOW, after_s, nodes).pods == tuple(pods)


def test_pod_that_stays_on_a_node_out_of_service_is_not_deleted() -> None:
    staying = make_pod(JOB, Replica("worker", 0), state=RUNNING, node_name="off")
    nodes = {"off": lost(out_of_service=True)}
    assert force_deletions([staying], NOW, 60, nodes) == ForceDeletions()


@pytest.mark.parametrize(
    ("silent_s", "expected_s"),
    [
        pytest.param(0, 60, id="just now"),
        pytest.param(45, 15, id="for some time"),
        pytest.param(60, None, id="long enough"),
    ],
)
def test_pods_on_a_silent_node_are_due_together_as_it_fell_silent(
    silent_s: float, expected_s: float | None
) -> None:
    pods = [terminating(-30, index=0, node_name="cut"), terminating(-20, index=1, node_name="cut")]
    found = force_deletions(pods, NOW, 60, {"cut": lost(silent_s=silent_s)})
    assert found.requeue_after_s == expected_s
    assert found.pods == (tuple(pods) if expected_s is None else ())


def test_silent_node_is_waited_for_without_the_setting() -> None:
    pod = terminating(1e6, node_name="cut")
    assert force_deletions([pod], NOW, 0, {"cut": lost(silent_s=1e6)}) == ForceDeletions()


def test_pod_on_a_node_that_answers_gets_its_whole_time() -> None:
    pod = terminating(10, node_name="fine")
    assert force_deletions([pod], NOW, 60, {"cut": lost(silent_s=1e6)}).requeue_after_s == 50
