"""Workers on draining nodes."""

import attrs
import pytest

from dlctl.api.job import WORKER
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.policies.failure_policy import FailurePolicy
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.membership import Membership
from dlctl.reconcilers.membership import node_drain
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.planner import plan_membership
from tests.reconcilers.membership.builders import (
    LISTED,
    make_state,
    reasons,
    removing,
    unchanged,
    worker_pod,
)
from tests.support.cost_growth import cost_growth

DRAINING = frozenset({"node-b"})
ON_NODE_B = {1: worker_pod(1, node="node-b")}


def test_listed_worker_on_a_draining_node_gets_a_successor() -> None:
    state = make_state(pods=ON_NODE_B, draining_nodes=DRAINING)
    plan = node_drain.evacuate(state, unchanged(state))
    assert plan.membership.members == (0, 1, 2)
    assert plan.membership.evacuating == removing(1)
    assert plan.membership.hosts == LISTED.hosts
    assert reasons(plan.notes) == ["TrainingJobNodeDraining"]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(make_state(pods=ON_NODE_B), id="node stays"),
        pytest.param(
            make_state(LISTED.with_hosts([0]), pods=ON_NODE_B, draining_nodes=DRAINING),
            id="not listed",
        ),
        pytest.param(
            make_state(pods=ON_NODE_B, draining_nodes=DRAINING, launched=False), id="no launcher"
        ),
        pytest.param(
            make_state(pods=ON_NODE_B, draining_nodes=DRAINING, phase=JobPhase.CREATING),
            id="not running",
        ),
        pytest.param(
            make_state(LISTED.retire([1]), pods=ON_NODE_B, draining_nodes=DRAINING), id="retired"
        ),
        pytest.param(
            make_state(LISTED.with_scaling(removing(1)), pods=ON_NODE_B, draining_nodes=DRAINING),
            id="departing anyway",
        ),
    ],
)
def test_worker_is_not_evacuated(state: MembershipState) -> None:
    assert node_drain.evacuate(state, unchanged(state)) == unchanged(state)


def test_second_draining_node_joins_the_evacuation_and_keeps_its_start() -> None:
    evacuating = removing(0, since_s=10.0)
    membership = LISTED.add([2]).with_evacuating(evacuating)
    state = make_state(membership, pods=ON_NODE_B, draining_nodes=DRAINING)
    plan = node_drain.evacuate(state, unchanged(state))
    assert plan.membership.evacuating == attrs.evolve(evacuating, workers=(0, 1))
    assert plan.membership.members == (0, 1, 2, 3)


def test_evacuated_worker_is_retired_when_its_pod_is_gone() -> None:
    membership = LISTED.with_hosts([0]).add([2]).with_evacuating(removing(1))
    state = make_state(membership, pods={1: None})
    plan = node_drain.evacuate(state, unchanged(state))
    assert plan.membership.members == (0, 2)
    assert plan.membership.retired == {1}
    assert plan.membership.evacuating is None


def test_evacuated_worker_that_is_still_listed_keeps_its_pod() -> None:
    membership = LISTED.add([2]).with_evacuating(removing(1, since_s=600.0))
    state = make_state(membership, elasticity=Elasticity(min_replicas=2))
    plan = node_drain.evacuate(state, unchanged(state))
    assert plan.deleted_pods == ()
    assert plan.membership == membership


def test_evacuation_ends_when_the_jobs_pods_are_deleted() -> None:
    state = make_state(LISTED.add([2]).with_evacuating(removing(1)))
    plan = node_drain.complete(unchanged(state))
    assert plan.membership.members == (0, 2)
    assert plan.membership.hosts == (0,)
    assert plan.membership.evacuating is None


def with_policy(state: MembershipState, *tolerated: str) -> MembershipState:
    run_policy = attrs.evolve(state.job.run_policy, failure_policy=FailurePolicy())
    success = attrs.evolve(state.job.success_policy, tolerated_types=frozenset(tolerated))
    job = attrs.evolve(state.job, run_policy=run_policy, success_policy=success)
    return attrs.evolve(state, job=job)


def test_failure_policy_does_not_keep_tolerated_workers_on_a_draining_node() -> None:
    state = with_policy(make_state(pods=ON_NODE_B, draining_nodes=DRAINING), WORKER)
    plan = node_drain.evacuate(state, unchanged(state))
    assert plan.membership.members == (0, 1, 2)
    assert plan.membership.evacuating == removing(1)


def test_workers_about_which_a_failure_policy_decides_are_left_to_it() -> None:
    state = with_policy(make_state(pods=ON_NODE_B, draining_nodes=DRAINING))
    assert node_drain.evacuate(state, unchanged(state)) == unchanged(state)


def test_time_to_plan_a_drain_grows_no_faster_than_the_workers() -> None:
    def plan_drain(count: int) -> None:
        listed = tuple(range(count))
        membership = Membership(members=listed, hosts=listed, observed_replicas=count, generation=7)
        state = make_state(membership, draining_nodes=["node-a"], desired_replicas=count)
        plan = plan_membership(state)
        assert plan.membership.leaving == frozenset(listed)
        assert len(plan.membership.present) == 2 * count

    # If the leaving workers were gathered for each worker, it would be 16.
    assert cost_growth(plan_drain, small=1000) < 10
