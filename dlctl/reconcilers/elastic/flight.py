"""Workers on nodes that are about to go: they leave in time, and others take their places. Pure.

It waits for no other change: a node that goes does not either.
"""

import attrs

from dlctl.api.elastic import Scaling
from dlctl.api.status import JobPhase
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.farewell import cleared, let_go
from dlctl.reconcilers.elastic.roster import fresh
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.status import Note


def flee(view: View, draft: Draft) -> None:
    """Take workers off such nodes; their successors come when there is room for them."""
    fleeing = view.roster.fleeing
    if fleeing is not None and _has_left(view, draft, fleeing):
        draft.dismiss(*fleeing.workers)
        for index in fleeing.workers:
            # Their processes may have ended before the launcher let go of them.
            draft.spend(index)
        draft.roster = attrs.evolve(draft.roster, fleeing=None)
        return
    leaving = view.roster.leaving
    # Those that nobody uses yet stay until their nodes go: others might come to no better ones.
    listed = (i for i in view.alive if i in view.hosts and i not in leaving)
    doomed = tuple(i for i in listed if view.is_doomed(i))
    if not doomed or view.launcher is None or view.job.status.phase is not JobPhase.RUNNING:
        return
    before = fleeing.workers if fleeing else ()
    since = fleeing.since if fleeing else view.now
    successors = fresh(draft.roster, len(doomed), view.last_index)
    flight = Scaling(False, (*before, *doomed), since)
    draft.roster = attrs.evolve(draft.roster, fleeing=flight)
    draft.enrol(*successors)
    left, coming = ", ".join(view.names(doomed)), ", ".join(view.names(successors))
    message = f"the nodes of {left} are about to go: {coming} will take their places"
    draft.notes.append(Note("Warning", "TrainingJobNodeGoing", message))


def _has_left(view: View, draft: Draft, fleeing: Scaling) -> bool:
    # Some are listed until others have come.
    if set(fleeing.workers).intersection(view.roster.hosts):
        return False
    return let_go(view, draft, fleeing) and cleared(view, draft, fleeing)


def settle(draft: Draft) -> None:
    """Leave it at that, where all pods of the job go."""
    if draft.roster.fleeing is not None:
        draft.dismiss(*draft.roster.fleeing.workers)
        draft.roster = attrs.evolve(draft.roster, fleeing=None)
