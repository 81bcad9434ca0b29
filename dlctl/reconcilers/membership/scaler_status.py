"""The next statuses of scalers, and the events about them. Pure."""

from collections.abc import Sequence

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.objects.scalers import ScaleFailure, Scaler, ScalerPhase
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.reconcilers.membership.membership_plan import MembershipPlan, ScalerUpdate


def scaler_created(plan: MembershipPlan, scaler: Scaler) -> MembershipPlan:
    created = plan.dialect.conditions.scaler_created(scaler, plan.now)
    return plan.with_scaler_update(_with_condition(plan, scaler, created))


def scaling_started(plan: MembershipPlan, scaler: Scaler, pods: Sequence[str]) -> MembershipPlan:
    """Set the Scaling phase of a scaler, with the pods of its operation."""
    condition = plan.dialect.conditions.scaler_scaling(scaler, plan.now)
    update = _with_condition(plan, scaler, condition)
    status = attrs.evolve(update.status, phase=ScalerPhase.SCALING, pods=tuple(pods))
    return plan.with_scaler_update(attrs.evolve(update, status=status))


def script_executed(plan: MembershipPlan, scaler: Scaler) -> MembershipPlan:
    """Record once that a scaler's script has run or, without one, the host files are written."""
    if plan.dialect.conditions.has_executed_script(scaler):
        return plan
    executed = plan.dialect.conditions.script_executed(scaler, plan.now)
    return plan.with_scaler_update(_with_condition(plan, scaler, executed))


def rejected(plan: MembershipPlan, scaler: Scaler, failure: ScaleFailure) -> MembershipPlan:
    """Fail a scaler that cannot be carried out, with the conditions of one that has started."""
    if not scaler.status.conditions:
        plan = scaler_created(plan, scaler)
    if scaler.status.phase is ScalerPhase.NEW:
        plan = scaling_started(plan, scaler, scaler.status.pods)
    plan = scaling_finished(plan, scaler, failure)
    update = plan.scaler_updates[scaler.uid]
    return plan.with_scaler_update(attrs.evolve(update, is_rejected=True))


def scaling_finished(
    plan: MembershipPlan, scaler: Scaler, failure: ScaleFailure | None = None
) -> MembershipPlan:
    """Set the result of a scaler."""
    if not failure and scaler.script is None:
        plan = script_executed(plan, scaler)
    condition = plan.dialect.conditions.scaler_finished(scaler, plan.now, failure)
    update = _with_condition(plan, scaler, condition)
    phase = ScalerPhase.FAILED if failure else ScalerPhase.SUCCEEDED
    note = EventNote("Warning" if failure else "Normal", condition.reason, condition.message)
    status = attrs.evolve(update.status, phase=phase)
    # Even if it was rejected: the job's status may name it.
    update = attrs.evolve(update, status=status, note=note, is_rejected=False)
    return plan.with_scaler_update(update)


def _with_condition(plan: MembershipPlan, scaler: Scaler, condition: Condition) -> ScalerUpdate:
    update = plan.scaler_updates.get(scaler.uid) or ScalerUpdate(scaler, scaler.status)
    # The newest condition is last: ``kubectl get`` shows it.
    kept = conditions.without_condition(update.status.conditions, condition.type)
    return attrs.evolve(update, status=attrs.evolve(update.status, conditions=(*kept, condition)))
