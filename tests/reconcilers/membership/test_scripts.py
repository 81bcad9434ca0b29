"""Scripts of scalers: when they run, are retried, and count as failed."""

from typing import Any

import attrs

from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler, Script
from dlctl.dialects.et_operator.training_conditions import SCRIPT_EXECUTED
from dlctl.reconcilers.membership.exec_tasks import LauncherContainer, RunScript
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.scripts import ScriptResult, run_script
from tests.reconcilers.membership.builders import (
    adding,
    answered,
    make_state,
    scaler_out,
    unchanged,
)

PENDING, SUCCEEDED = ScriptResult(is_finished=False), ScriptResult(is_finished=True)
SCALER = scaler_out(script="/join.sh", backoffLimit=1)


def state_of(**fields: Any) -> MembershipState:
    return make_state(scalers=[SCALER], **fields)


def run(state: MembershipState, scaler: Scaler = SCALER) -> tuple[ScriptResult, MembershipPlan]:
    return run_script(state, unchanged(state), adding(2, 3), scaler)


def test_script_gets_the_slots_of_each_worker_that_joins() -> None:
    state = state_of(slots=4)
    result, plan = run(state)
    assert isinstance(state.launcher, LauncherContainer)
    workers = ("linear-worker-2:4", "linear-worker-3:4")
    task = RunScript(state.launcher, SCALER.uid, Script("/join.sh"), workers)
    assert (result, list(plan.exec_tasks), list(plan.retries)) == (PENDING, [task], [])


def test_script_waits_for_the_launcher() -> None:
    result, plan = run(state_of(launched=False))
    assert (result, plan.exec_tasks) == (PENDING, frozenset())


def test_success_is_recorded_on_the_scaler() -> None:
    state = state_of()
    result, plan = run(answered(state, run(state)[1]))
    assert result == SUCCEEDED
    status = plan.scaler_updates[SCALER.uid].status
    assert [c.type for c in status.conditions] == [SCRIPT_EXECUTED]


def test_recorded_script_does_not_run_again() -> None:
    state = state_of()
    _, recorded = run(answered(state, run(state)[1]))
    scaler = attrs.evolve(SCALER, status=recorded.scaler_updates[SCALER.uid].status)
    result, plan = run(state, scaler)
    assert (result, plan) == (SUCCEEDED, unchanged(state))


def test_failed_script_is_retried_up_to_the_limit() -> None:
    state = state_of()
    _, first = run(state)
    result, plan = run(answered(state, first, error="exit code 1"))
    assert (result, plan.retries) == (PENDING, first.exec_tasks)

    result, plan = run(answered(state, first, error="exit code 1", tries=2))
    assert result == ScriptResult(True, ScaleFailure("exit code 1", FailedStep.RUN_SCRIPT))
    # It stays wanted: a task that is no longer wanted loses its outcome.
    assert (plan.exec_tasks, plan.retries) == (first.exec_tasks, frozenset())


def test_failed_script_leaves_the_scaler_to_its_operation() -> None:
    state = state_of()
    _, plan = run(answered(state, run(state)[1], error="exit code 1", tries=2))
    assert plan.scaler_updates == {}
