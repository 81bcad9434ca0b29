"""Plans as values: what each method adds, and when the generation of the hosts grows."""

from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.job import WORKER, Replica
from dlctl.api.status.job_status import RestartRecord
from dlctl.api.status.membership import Membership
from tests.builders import NOW
from tests.reconcilers.membership.builders import LISTED, make_state, unchanged, worker_pod

INDEXES = st.frozensets(st.integers(0, 6))
RESTART = RestartRecord(1, 1, "uid", "Error", NOW)


def test_generation_grows_only_when_the_hosts_differ_from_the_persisted_ones() -> None:
    plan = unchanged(make_state())
    assert plan.with_membership(LISTED.add([2])).membership.generation == LISTED.generation

    changed = plan.with_membership(LISTED.remove([1]))
    assert changed.membership.generation == int(NOW.timestamp())

    back = changed.with_membership(changed.membership.add([1]).with_hosts([0, 1]))
    assert back.membership == LISTED


def test_generation_grows_even_if_the_clock_is_behind() -> None:
    future = Membership(members=(0,), hosts=(0,), generation=2**40)
    plan = unchanged(make_state(future))
    assert plan.with_membership(future.remove([0])).membership.generation == 2**40 + 1


@given(INDEXES, INDEXES, INDEXES)
def test_membership_stays_sorted_and_lists_no_removed_worker(
    members: frozenset[int], hosts: frozenset[int], gone: frozenset[int]
) -> None:
    membership = Membership().add(members).with_hosts(hosts).remove(gone)
    assert membership.members == tuple(sorted(members - gone))
    assert membership.hosts == tuple(sorted(hosts - gone))


def test_restart_is_replaced_and_forgotten() -> None:
    plan = unchanged(make_state()).with_restarts({Replica(WORKER, 1): RESTART})
    assert plan.restarts == {"worker-1": RESTART}
    assert plan.with_restarts({Replica(WORKER, 1): None}).restarts == {}
    assert plan.restarts == {"worker-1": RESTART}


def test_terminating_pod_is_not_deleted_again() -> None:
    pods = (worker_pod(0), worker_pod(1, terminating=True))
    plan = unchanged(make_state()).with_deleted_pods(pods)
    assert [pod.metadata.name for pod in plan.deleted_pods] == ["linear-worker-0"]
