"""How workers are taken away: the launcher lets go of them, and then their pods go. Pure."""

from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.elastic import Scaling
from dlctl.api.pods import Pod
from dlctl.reconcilers.elastic import hosts
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.errands import LetGo
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.status import Note

_TRIES: Final = 5


def unused(view: View, draft: Draft, scaling: Scaling) -> tuple[int, ...] | None:
    """Return those that leave and that the launcher does not use while it uses others.

    None while it is not known. It takes two looks, a while apart: a launcher that dials its workers
    one after another uses some of them a little before the others. If the launcher cannot be looked
    into, also at a later try, they count as unused.
    """
    workers = {i: one.pod for i in view.roster.hosts if (one := view.workers.get(i)) and one.pod}
    leaving = tuple(i for i in scaling.workers if i in workers)
    if view.launcher is None or not leaving:
        return ()
    listed = frozenset((view.name(i), _address(pod)) for i, pod in workers.items())
    look = LetGo(view.launcher, listed)
    found = _unused(view, draft, look, leaving)
    return _unused(view, draft, attrs.evolve(look, confirms=True), found) if found else found


def _unused(
    view: View, draft: Draft, look: LetGo, workers: Sequence[int]
) -> tuple[int, ...] | None:
    """Return those of the workers that the launcher does not use, None while it is not known."""
    draft.wanted.add(look)
    outcome = view.outcomes.get(look)
    if outcome is None:
        return None
    if outcome.error and outcome.tries < _TRIES:
        # A fault of the API server says nothing of the workers, and each index that is lost counts.
        draft.again.add(look)
        return None
    if outcome.error:
        return tuple(workers)
    used = outcome.result
    found = tuple(i for i in workers if view.name(i) not in used) if used else ()
    if found and look.confirms and outcome.tries == 1:
        # The first try follows at once upon what it is to confirm.
        draft.again.add(look)
        return None
    return found


def let_go(view: View, draft: Draft, scaling: Scaling) -> bool:
    """Tell whether nobody dials these workers any more, or has been given time enough."""
    launcher = view.launcher
    if not view.launched:
        return True
    there = frozenset(
        (view.name(i), _address(one.pod))
        for i in scaling.workers
        if (one := view.workers.get(i)) and one.pod and not one.pod.metadata.terminating
    )
    if not there:
        return True
    wait_s = view.left_s(scaling, view.policy.let_go_s)
    if wait_s <= 0:
        names = ", ".join(view.names(scaling.workers))
        message = f"the launcher still used {names} after {view.policy.let_go_s:g} s"
        draft.notes.append(Note("Warning", "TrainingJobWorkersInUse", message))
        return True
    draft.waits_s.append(wait_s)
    if launcher is None or not hosts.delivered(view, draft.roster):
        return False
    errand = LetGo(launcher, there)
    draft.wanted.add(errand)
    outcome = view.outcomes.get(errand)
    if outcome is not None and (outcome.error or outcome.result):
        draft.again.add(errand)
        return False
    return outcome is not None


def cleared(view: View, draft: Draft, scaling: Scaling) -> bool:
    """Tell whether the pods of those that leave are gone; until then, have them deleted."""
    there = [one.pod for i in scaling.workers if (one := view.workers.get(i)) and one.pod]
    draft.deleted += [pod for pod in there if not pod.metadata.terminating]
    return not there


def _address(pod: Pod) -> str:
    return (pod.status.pod_ip if pod.status else None) or ""
