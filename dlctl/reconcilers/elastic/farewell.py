"""How workers are taken away: the launcher lets go of them, and then their pods go. Pure."""

from dlctl.api.elastic import Scaling
from dlctl.api.pods import Pod
from dlctl.reconcilers.elastic import hosts
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.errands import LetGo
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.status import Note


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
    if launcher is None or not hosts.delivered(view, draft.roster.hosts):
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
