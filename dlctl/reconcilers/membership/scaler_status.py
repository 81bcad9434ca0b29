"""What scalers are told: their next status, and an event. Pure."""

import datetime
from collections.abc import Sequence

import attrs

from dlctl.api import conditions
from dlctl.api.conditions import Condition
from dlctl.api.elastic import Scaler, ScalerPhase
from dlctl.dialects.et_operator import training_conditions
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.membership.membership_plan import MembershipPlan, ScalerUpdate


def scaler_created(plan: MembershipPlan, scaler: Scaler, now: datetime.datetime) -> None:
    _add_condition(plan, scaler, training_conditions.scaler_created(scaler, now))


def scaling_started(
    plan: MembershipPlan, scaler: Scaler, pods: Sequence[str], now: datetime.datetime
) -> None:
    """Say that it is a scaler's turn, and which pods it is about."""
    update = _add_condition(plan, scaler, training_conditions.scaler_scaling(scaler, now))
    update.status = attrs.evolve(update.status, phase=ScalerPhase.SCALING, pods=tuple(pods))


def script_executed(plan: MembershipPlan, scaler: Scaler, now: datetime.datetime) -> None:
    _add_condition(plan, scaler, training_conditions.script_executed(scaler, now))


def scaling_finished(
    plan: MembershipPlan, scaler: Scaler, now: datetime.datetime, failure: str = ""
) -> None:
    """Say what has come of it; without a failure it has succeeded."""
    condition = training_conditions.scaler_finished(scaler, now, ok=not failure, message=failure)
    update = _add_condition(plan, scaler, condition)
    phase = ScalerPhase.FAILED if failure else ScalerPhase.SUCCEEDED
    update.status = attrs.evolve(update.status, phase=phase)
    update.note = EventNote("Warning" if failure else "Normal", condition.reason, condition.message)


def _add_condition(plan: MembershipPlan, scaler: Scaler, condition: Condition) -> ScalerUpdate:
    update = plan.scaler_updates.setdefault(scaler.uid, ScalerUpdate(scaler, scaler.status))
    # What is stated last stands last: ``kubectl get`` shows it.
    kept = conditions.without_condition(update.status.conditions, condition.type)
    update.status = attrs.evolve(update.status, conditions=(*kept, condition))
    return update
