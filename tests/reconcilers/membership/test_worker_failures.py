"""Workers that fail while their job runs, and their successors."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.objects.pods import Pod
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status.job_status import RestartRecord
from dlctl.api.status.membership import Membership
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.planner import plan_membership
from dlctl.reconcilers.membership.worker_failures import record_failures, replace_failed
from tests.builders import NOW
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.membership.builders import (
    LISTED,
    ago,
    make_state,
    reasons,
    removing,
    unchanged,
    worker_pod,
)
from tests.support.cost_growth import cost_growth

REPLACED = Elasticity(replace_failed=True)
RETRIED = read_job(worker={"restartPolicy": "OnFailure"})


def retired(
    attempts: int = 1, *, since_s: float = 0.0, elasticity: Elasticity = REPLACED
) -> MembershipState:
    """Return the state of a job that has lost worker 1 ``attempts`` times."""
    restart = RestartRecord(attempts, attempts, "uid", "Error", ago(since_s))
    status = attrs.evolve(RETRIED.status, restarts={"worker-1": restart})
    job = attrs.evolve(RETRIED, status=status)
    return make_state(LISTED.retire([1]), job=job, elasticity=elasticity)


@pytest.mark.parametrize(
    ("pod", "elasticity", "returns"),
    [
        pytest.param(worker_pod(1, exit_code=1), REPLACED, True, id="failed"),
        pytest.param(worker_pod(1, exit_code=1), Elasticity(), False, id="not replaced"),
        pytest.param(worker_pod(1, exit_code=0), REPLACED, False, id="succeeded"),
        pytest.param(
            worker_pod(1, exit_code=0),
            Elasticity(replace_failed=True, replace_succeeded=True),
            True,
            id="succeeded and replaced",
        ),
        pytest.param(None, REPLACED, True, id="deleted"),
        pytest.param(worker_pod(1, terminating=True), REPLACED, True, id="terminating"),
        pytest.param(
            worker_pod(1, exit_code=1),
            attrs.evolve(REPLACED, replacement_limit=0),
            False,
            id="limit",
        ),
    ],
)
def test_listed_worker_that_exits_is_retired(
    pod: Pod | None, elasticity: Elasticity, returns: bool
) -> None:
    state = make_state(pods={1: pod}, elasticity=elasticity, job=RETRIED)
    plan = record_failures(state, unchanged(state))
    assert plan.membership.retired == {1}
    assert reasons(plan.notes) == ["TrainingJobWorkerFailed"]
    assert ("worker-1" in plan.restarts) is returns


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(make_state(), id="runs"),
        pytest.param(make_state(pods={1: worker_pod(1, ready_s=None)}), id="not ready"),
        pytest.param(make_state(LISTED.retire([1]), pods={1: None}), id="recorded before"),
        pytest.param(
            make_state(LISTED.with_scaling(removing(1)).with_hosts([0]), pods={1: None}),
            id="removed by a ScaleIn",
        ),
        pytest.param(
            make_state(
                LISTED.with_hosts([0]),
                pods={1: worker_pod(1, exit_code=1)},
                job=RETRIED,
                elasticity=REPLACED,
            ),
            id="unlisted, runs again under its name",
        ),
    ],
)
def test_worker_is_not_retired(state: MembershipState) -> None:
    assert record_failures(state, unchanged(state)) == unchanged(state)


@pytest.mark.parametrize(
    ("membership", "returns"),
    [
        pytest.param(LISTED.with_scaling(removing(1)), True, id="ScaleIn"),
        pytest.param(LISTED.with_evacuating(removing(1)), False, id="evacuated"),
    ],
)
def test_leaving_worker_that_dies_while_listed_is_not_replaced_yet(
    membership: Membership, returns: bool
) -> None:
    state = make_state(membership, pods={1: None}, job=RETRIED, elasticity=REPLACED)
    plan = record_failures(state, unchanged(state))
    assert plan.membership.retired == {1}
    # The record of a removed worker is there in case that its removal fails.
    assert ("worker-1" in plan.restarts) is returns
    after = attrs.evolve(state, membership=plan.membership)
    assert replace_failed(after, plan) == plan


def test_first_successor_is_added_at_once_under_the_next_index() -> None:
    state = retired()
    plan = replace_failed(state, unchanged(state))
    assert plan.membership.members == (0, 2)
    assert plan.membership.hosts == (0,)
    assert list(plan.restarts) == ["worker-2"]
    assert reasons(plan.notes) == ["TrainingJobWorkerCreated"]


def test_later_successor_waits_for_the_backoff() -> None:
    state = retired(2, since_s=4.0)
    plan = replace_failed(state, unchanged(state))
    assert plan.membership == state.membership
    assert plan.requeue_after_s == 6.0

    state = retired(2, since_s=10.0)
    assert replace_failed(state, unchanged(state)).membership.members == (0, 2)


@pytest.mark.parametrize(
    "elasticity",
    [
        pytest.param(attrs.evolve(REPLACED, replacement_limit=1), id="limit"),
        pytest.param(attrs.evolve(REPLACED, max_replicas=1), id="maximum reached"),
    ],
)
def test_worker_gets_no_successor(elasticity: Elasticity) -> None:
    state = retired(2, since_s=600.0, elasticity=elasticity)
    assert replace_failed(state, unchanged(state)) == unchanged(state)


def test_worker_beyond_the_restart_limit_gets_no_successor() -> None:
    state = make_state(LISTED.retire([1]), elasticity=REPLACED)
    assert replace_failed(state, unchanged(state)) == unchanged(state)


@given(st.sets(st.integers(0, 5), min_size=1), st.sets(st.integers(0, 5)))
def test_each_replaced_worker_has_one_successor_with_a_new_name(
    members: set[int], lost: set[int]
) -> None:
    lost &= members
    membership = Membership().add(members).with_hosts(members).retire(lost)
    restarts = {f"worker-{i}": RestartRecord(1, 1, "uid", "Error", NOW) for i in lost}
    status = attrs.evolve(RETRIED.status, restarts=restarts)
    job = attrs.evolve(RETRIED, status=status)
    state = make_state(membership, job=job, elasticity=REPLACED)

    plan = replace_failed(state, unchanged(state))
    assert len(plan.membership.members) == len(members)
    assert not lost & set(plan.membership.members)
    assert set(plan.membership.hosts) == members - lost
    assert len(plan.restarts) == len(lost)


def test_time_to_plan_lost_workers_grows_no_faster_than_their_number() -> None:
    def plan_loss(count: int) -> None:
        listed = tuple(range(count))
        membership = Membership(members=listed, hosts=listed, observed_replicas=count, generation=7)
        elasticity = Elasticity(max_replicas=count, replace_failed=True)
        plan = plan_membership(
            make_state(membership, pods=dict.fromkeys(listed), elasticity=elasticity)
        )
        assert plan.membership.members == tuple(range(count, 2 * count))
        assert plan.membership.retired == frozenset(listed)
        assert len(plan.restarts) == count

    # A plan that is copied for each worker would take 16 times as long.
    assert cost_growth(plan_loss, small=500) < 10
