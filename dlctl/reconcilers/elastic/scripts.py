"""The scripts of scalers: programs in the launcher that take part in a change. Pure.

One that has run is run again only if the controller ended before it could be written down. One that
fails is tried again after a pause, as often as its scaler says.
"""

from dlctl.api import conditions
from dlctl.api.elastic import Scaler, Scaling
from dlctl.dialects.elastic import words
from dlctl.reconcilers.elastic import tellings
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.errands import RunScript
from dlctl.reconcilers.elastic.view import View


def run(view: View, draft: Draft, scaling: Scaling, scaler: Scaler) -> str | None:
    """Return None once a scaler's script has run, a failure if it cannot, else nothing yet."""
    if conditions.holds(scaler.status.conditions, words.SCRIPT_EXECUTED):
        return None
    if scaler.script is None or view.launcher is None:
        return ""
    slots = view.slots
    workers = tuple(f"{name}:{slots}" for name in view.names(scaling.workers))
    errand = RunScript(view.launcher, scaler.uid, scaler.script, workers)
    draft.wanted.add(errand)
    outcome = view.outcomes.get(errand)
    if outcome is None:
        return ""
    if not outcome.error:
        tellings.script_executed(draft, scaler, view.now)
        return None
    if outcome.tries > scaler.backoff_limit:
        return f"execute script failed, error: {outcome.error}"
    draft.again.add(errand)
    return ""
