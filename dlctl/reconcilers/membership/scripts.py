"""The scripts of scalers: programs in the launcher that take part in an operation. Pure.

A script runs a second time only if the controller ends before the first run is persisted. A failed
script is retried after a pause, up to its scaler's back-off limit.
"""

from dlctl.api import conditions
from dlctl.api.elastic import ScaleOperation, Scaler
from dlctl.dialects.et_operator import training_conditions
from dlctl.reconcilers.membership import scaler_status
from dlctl.reconcilers.membership.exec_tasks import RunScript
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState


def run_script(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> tuple[str | None, MembershipPlan]:
    """Return None once a scaler's script has run, a failure message, or "" while it is pending."""
    if conditions.is_true(scaler.status.conditions, training_conditions.SCRIPT_EXECUTED):
        return None, plan
    if scaler.script is None or state.launcher is None:
        return "", plan
    slots = state.slots
    workers = tuple(f"{name}:{slots}" for name in state.pod_names(operation.workers))
    task = RunScript(state.launcher, scaler.uid, scaler.script, workers)
    outcome = state.outcomes.get(task)
    if outcome is None:
        return "", plan.with_exec_task(task)
    if not outcome.error:
        return None, scaler_status.script_executed(plan.with_exec_task(task), scaler)
    if outcome.attempts > scaler.backoff_limit:
        return f"execute script failed, error: {outcome.error}", plan.with_exec_task(task)
    return "", plan.with_exec_task(task, retry=True)
