"""The statuses of scalers, and the events about them."""

import attrs
import pytest

from dlctl.api.objects.scalers import ScaleFailure, ScalerPhase
from dlctl.reconcilers.membership import scaler_status
from tests.reconcilers.membership.builders import make_state, scaler_in, scaler_out, unchanged

SCALER = scaler_out()
PLAN = unchanged(make_state())


def test_started_scaler_names_its_pods() -> None:
    plan = scaler_status.scaler_created(PLAN, SCALER)
    plan = scaler_status.scaling_started(plan, SCALER, ["linear-worker-2"])
    (update,) = plan.scaler_updates.values()
    assert update.status.phase is ScalerPhase.SCALING
    assert update.status.pods == ("linear-worker-2",)
    assert [c.type for c in update.status.conditions] == ["Created", "Scaling"]
    assert update.note is None


@pytest.mark.parametrize(
    ("failure", "phase", "type_", "reason"),
    [
        pytest.param(None, ScalerPhase.SUCCEEDED, "Normal", "ScalingOutSucceeded", id="succeeded"),
        pytest.param(
            ScaleFailure("no"), ScalerPhase.FAILED, "Warning", "ScalingOutFailed", id="failed"
        ),
    ],
)
def test_finished_scaler_gets_an_event(
    failure: ScaleFailure | None, phase: ScalerPhase, type_: str, reason: str
) -> None:
    plan = scaler_status.scaling_finished(PLAN, SCALER, failure)
    (update,) = plan.scaler_updates.values()
    assert update.status.phase is phase
    assert update.note is not None
    assert (update.note.type, update.note.reason) == (type_, reason)
    assert update.note.message == update.status.conditions[-1].message


def test_newest_condition_is_last_and_each_type_appears_once() -> None:
    known = scaler_status.scaling_started(PLAN, SCALER, []).scaler_updates[SCALER.uid]
    scaler = attrs.evolve(SCALER, status=known.status)
    plan = scaler_status.script_executed(PLAN, scaler)
    plan = scaler_status.scaling_started(plan, scaler, [])
    (update,) = plan.scaler_updates.values()
    assert [c.type for c in update.status.conditions] == ["ScriptExecuted", "Scaling"]


def test_each_scaler_has_its_own_update() -> None:
    plan = scaler_status.scaler_created(PLAN, SCALER)
    plan = scaler_status.scaling_finished(plan, scaler_in())
    assert list(plan.scaler_updates) == ["uid-of-out", "uid-of-in"]
    assert PLAN.scaler_updates == {}
