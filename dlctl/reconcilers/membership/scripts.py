"""The scripts of scalers: programs in the launcher that take part in an operation. Pure.

A script runs a second time only if the controller ends before the first run is persisted. A failed
script is retried after a pause, up to its scaler's back-off limit.
"""

from typing import Final

import attrs

from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler
from dlctl.api.status.membership import ScaleOperation
from dlctl.reconcilers.membership import scaler_status
from dlctl.reconcilers.membership.exec_tasks import RunScript
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState


@attrs.frozen
class ScriptResult:
    """Whether a script has ended, and how if it has failed for good."""

    is_finished: bool
    failure: ScaleFailure | None = None


_PENDING: Final = ScriptResult(is_finished=False)
_SUCCEEDED: Final = ScriptResult(is_finished=True)


def run_script(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> tuple[ScriptResult, MembershipPlan]:
    """Return the result of a scaler's script, and the plan that runs it until there is one."""
    if state.dialect.conditions.has_executed_script(scaler):
        return _SUCCEEDED, plan
    if scaler.script is None or state.launcher is None:
        return _PENDING, plan
    slots = state.slots
    workers = tuple(f"{name}:{slots}" for name in state.pod_names(operation.workers))
    task = RunScript(state.launcher, scaler.uid, scaler.script, workers)
    outcome = state.outcomes.get(task)
    if outcome is None:
        return _PENDING, plan.with_exec_task(task)
    if not outcome.error:
        return _SUCCEEDED, scaler_status.script_executed(plan.with_exec_task(task), scaler)
    if outcome.attempts > scaler.backoff_limit:
        failure = ScaleFailure(outcome.error, FailedStep.RUN_SCRIPT)
        return ScriptResult(is_finished=True, failure=failure), plan.with_exec_task(task)
    return _PENDING, plan.with_exec_task(task, retry=True)
