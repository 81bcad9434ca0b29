"""What scalers are told: their next status, and an event. Pure."""

import datetime
from collections.abc import Sequence

import attrs

from dlctl.api import conditions
from dlctl.api.conditions import Condition
from dlctl.api.elastic import Scaler, ScalerPhase
from dlctl.dialects.elastic import words
from dlctl.reconcilers.elastic.draft import Draft, ScalerChange
from dlctl.reconcilers.status import Note


def created(draft: Draft, scaler: Scaler, now: datetime.datetime) -> None:
    _state(draft, scaler, words.scaler_created(scaler, now))


def begun(draft: Draft, scaler: Scaler, pods: Sequence[str], now: datetime.datetime) -> None:
    """Say that it is a scaler's turn, and which pods it is about."""
    change = _state(draft, scaler, words.scaler_scaling(scaler, now))
    change.status = attrs.evolve(change.status, phase=ScalerPhase.SCALING, pods=tuple(pods))


def script_executed(draft: Draft, scaler: Scaler, now: datetime.datetime) -> None:
    _state(draft, scaler, words.script_executed(scaler, now))


def ended(draft: Draft, scaler: Scaler, now: datetime.datetime, failure: str = "") -> None:
    """Say what has come of it; without a failure it has succeeded."""
    condition = words.scaler_ended(scaler, now, ok=not failure, message=failure)
    change = _state(draft, scaler, condition)
    phase = ScalerPhase.FAILED if failure else ScalerPhase.SUCCEEDED
    change.status = attrs.evolve(change.status, phase=phase)
    change.note = Note("Warning" if failure else "Normal", condition.reason, condition.message)


def _state(draft: Draft, scaler: Scaler, condition: Condition) -> ScalerChange:
    change = draft.scalers.setdefault(scaler.uid, ScalerChange(scaler, scaler.status))
    # What is stated last stands last: ``kubectl get`` shows it.
    kept = conditions.without(change.status.conditions, condition.type)
    change.status = attrs.evolve(change.status, conditions=(*kept, condition))
    return change
