"""The scripts of scalers: programs in the launcher that take part in a change. Pure.

One that has run is run again only if the controller ended before it could be written down. One that
fails is tried again after a pause, as often as its scaler says.
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
) -> str | None:
    """Return None once a scaler's script has run, a failure if it cannot, else nothing yet."""
    if conditions.is_true(scaler.status.conditions, training_conditions.SCRIPT_EXECUTED):
        return None
    if scaler.script is None or state.launcher is None:
        return ""
    slots = state.slots
    workers = tuple(f"{name}:{slots}" for name in state.pod_names(operation.workers))
    task = RunScript(state.launcher, scaler.uid, scaler.script, workers)
    plan.exec_tasks.add(task)
    outcome = state.outcomes.get(task)
    if outcome is None:
        return ""
    if not outcome.error:
        scaler_status.script_executed(plan, scaler, state.now)
        return None
    if outcome.attempts > scaler.backoff_limit:
        return f"execute script failed, error: {outcome.error}"
    plan.retries.add(task)
    return ""
