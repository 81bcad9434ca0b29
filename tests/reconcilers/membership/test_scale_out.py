"""Scale-out operations: when new workers become hosts, and when they fail."""

from typing import Any

import attrs
import pytest

from dlctl.api.objects.scalers import Scaler, ScalerPhase
from dlctl.api.status.membership import Membership
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.reconcilers.membership.exec_output import ProbeResult
from dlctl.reconcilers.membership.exec_tasks import RunScript
from dlctl.reconcilers.membership.hosts import write_task
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.scale_out import scale_out
from tests.builders import NOW
from tests.reconcilers.membership.builders import (
    LISTED,
    adding,
    answered,
    by_scaler,
    conditions,
    make_state,
    phases,
    scaler_out,
    unchanged,
    worker_pod,
)

OUT = scaler_out()
SCRIPTED_OUT = scaler_out(script="/join.sh", backoffLimit=1)
NOT_WRITTEN = TaskOutcome(error="no route", attempts=5)


def step(state: MembershipState) -> MembershipPlan:
    operation = state.membership.scaling
    assert operation is not None
    return scale_out(state, unchanged(state), operation)


def reaching(state: MembershipState, *workers: int) -> MembershipState:
    return answered(state, step(state), ProbeResult(frozenset(state.pod_names(workers))))


def scaling_out(scaler: Scaler, *workers: int, since_s: float = 0.0, **fields: Any) -> Membership:
    return LISTED.with_scaling(adding(*workers, since_s=since_s, **by_scaler(scaler), **fields))


def test_new_workers_are_listed_at_once_if_all_are_reachable() -> None:
    state = make_state(scaling_out(OUT, 2, 3), scalers=[OUT])
    plan = step(reaching(state, 2, 3))
    assert plan.membership.hosts == (0, 1, 2, 3)
    assert plan.membership.members == (0, 1)
    assert plan.membership.scaling == adding(2, 3, is_done=True, **by_scaler(OUT))


@pytest.mark.parametrize(("timeout_s", "wait_s"), [(None, 600.0), (90, 90.0)])
def test_new_workers_are_probed_when_all_are_ready(timeout_s: int | None, wait_s: float) -> None:
    pods, scaler = {3: worker_pod(3, ready_s=None)}, attrs.evolve(OUT, timeout_s=timeout_s)
    state = make_state(scaling_out(scaler, 2, 3), scalers=[scaler], pods=pods)
    plan = step(state)
    assert plan.exec_tasks == frozenset()
    assert plan.requeue_after_s == wait_s


@pytest.mark.parametrize(
    ("min_count", "workers"),
    [pytest.param(1, (2,), id="enough"), pytest.param(None, None, id="too few")],
)
def test_workers_ready_in_time_join_if_they_reach_the_minimum(
    min_count: int | None, workers: tuple[int, ...] | None
) -> None:
    scaler = attrs.evolve(OUT, min_count=min_count)
    membership = scaling_out(OUT, 2, 3, since_s=600.0)
    state = make_state(membership, scalers=[scaler], pods={3: worker_pod(3, ready_s=None)})
    plan = step(reaching(state, 2))
    scaling_on = plan.membership.scaling
    assert (scaling_on and scaling_on.workers) == workers
    assert phases(plan) == ({} if workers else {OUT.uid: ScalerPhase.FAILED})


def test_workers_ready_in_time_are_probed_after_a_controller_restart() -> None:
    membership = scaling_out(OUT, 2, 3, since_s=600.0)
    plan = step(make_state(membership, scalers=[OUT]))
    assert len(plan.exec_tasks) == 1
    assert plan.membership == membership


def test_script_runs_for_persisted_workers_and_before_they_are_listed() -> None:
    state = make_state(scaling_out(SCRIPTED_OUT, 2, 3), scalers=[SCRIPTED_OUT])
    plan = step(reaching(state, 2, 3))
    assert plan.membership == scaling_out(SCRIPTED_OUT, 2, 3, is_ready=True)

    state = make_state(plan.membership, scalers=[SCRIPTED_OUT])
    plan = step(state)
    (task,) = plan.exec_tasks
    assert isinstance(task, RunScript)
    assert plan.membership.hosts == (0, 1)

    plan = step(answered(state, plan))
    assert plan.membership.hosts == (0, 1, 2, 3)
    assert [c.type for c in plan.scaler_updates[SCRIPTED_OUT.uid].status.conditions] == [
        "ScriptExecuted"
    ]


@pytest.mark.parametrize(
    ("tries", "failed"), [pytest.param(1, False, id="retried"), pytest.param(2, True, id="failed")]
)
def test_failed_script_is_retried_up_to_its_limit(tries: int, failed: bool) -> None:
    membership = scaling_out(SCRIPTED_OUT, 2, 3, is_ready=True)
    state = make_state(membership, scalers=[SCRIPTED_OUT])
    plan = step(answered(state, step(state), error="exit 1", tries=tries))
    assert bool(plan.retries) is not failed
    assert plan.membership.scaling == (None if failed else membership.scaling)
    assert phases(plan) == ({SCRIPTED_OUT.uid: ScalerPhase.FAILED} if failed else {})


@pytest.mark.parametrize(
    ("failures", "failed"), [pytest.param(0, False, id="retried"), pytest.param(1, True, id="over")]
)
def test_worker_that_fails_before_use_is_recreated(failures: int, failed: bool) -> None:
    pods = {2: worker_pod(2, exit_code=1)}
    membership = scaling_out(SCRIPTED_OUT, 2, 3, failures=failures)
    state = make_state(membership, scalers=[SCRIPTED_OUT], pods=pods)
    plan = step(state)
    assert len(plan.deleted_pods) == (0 if failed else 1)
    assert plan.membership.scaling == (
        None if failed else adding(2, 3, failures=1, **by_scaler(SCRIPTED_OUT))
    )


def test_deleted_scaler_ends_its_operation() -> None:
    plan = step(make_state(scaling_out(OUT, 2, 3)))
    assert plan.membership == LISTED
    assert conditions(plan) == ["ScaleFailed"]


@pytest.mark.parametrize(
    ("since_s", "outcome", "phase"),
    [
        pytest.param(0.0, None, None, id="waits"),
        pytest.param(0.0, TaskOutcome(NOW), ScalerPhase.SUCCEEDED, id="written"),
        pytest.param(660.0, None, None, id="not tried since an outage of the controller"),
        pytest.param(660.0, TaskOutcome(error="no route", attempts=4), None, id="retried"),
        pytest.param(660.0, NOT_WRITTEN, ScalerPhase.FAILED, id="not written in time"),
    ],
)
def test_operation_ends_when_the_launcher_has_the_new_hosts(
    since_s: float, outcome: TaskOutcome | None, phase: ScalerPhase | None
) -> None:
    operation = adding(2, 3, since_s=since_s, is_done=True, **by_scaler(OUT))
    membership = LISTED.with_hosts(range(4)).with_scaling(operation)
    state = make_state(membership, scalers=[OUT])
    if outcome and (task := write_task(state, membership)):
        state = attrs.evolve(state, outcomes={task: outcome})
    plan = step(state)
    assert phases(plan) == ({OUT.uid: phase} if phase else {})
    assert plan.membership.members == ((0, 1, 2, 3) if phase else (0, 1))


def test_workers_of_a_changed_count_join_and_late_ones_follow() -> None:
    membership = LISTED.with_scaling(adding(2, 3))
    pods = {3: worker_pod(3, ready_s=None)}
    state = make_state(membership, pods=pods)
    assert step(state).membership == membership

    late = LISTED.with_scaling(adding(2, 3, since_s=600.0))
    plan = step(reaching(make_state(late, pods=pods), 2))
    assert plan.membership.members == (0, 1, 2, 3)
    assert plan.membership.hosts == (0, 1, 2)
    assert plan.membership.scaling is None
