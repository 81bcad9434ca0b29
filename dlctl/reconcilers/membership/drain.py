"""How workers are taken away: the launcher lets go of them, and then their pods go. Pure."""

from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.elastic import ScaleOperation
from dlctl.api.pods import Pod
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.membership import hosts
from dlctl.reconcilers.membership.exec_tasks import CheckInUse
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState

_MAX_TRIES: Final = 5


def unused_workers(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> tuple[int, ...] | None:
    """Return those that leave and that the launcher does not use while it uses others.

    None while it is not known. It takes two looks, a while apart: a launcher that dials its workers
    one after another uses some of them a little before the others. If the launcher cannot be looked
    into, also at a later try, they count as unused.
    """
    workers = {
        i: one.pod for i in state.membership.hosts if (one := state.workers.get(i)) and one.pod
    }
    leaving = tuple(i for i in operation.workers if i in workers)
    if state.launcher is None or not leaving:
        return ()
    listed = frozenset((state.pod_name(i), _pod_ip(pod)) for i, pod in workers.items())
    look = CheckInUse(state.launcher, listed)
    found = _unused(state, plan, look, leaving)
    return _unused(state, plan, attrs.evolve(look, confirms=True), found) if found else found


def _unused(
    view: MembershipState, draft: MembershipPlan, look: CheckInUse, workers: Sequence[int]
) -> tuple[int, ...] | None:
    """Return those of the workers that the launcher does not use, None while it is not known."""
    draft.exec_tasks.add(look)
    outcome = view.outcomes.get(look)
    if outcome is None:
        return None
    if outcome.error and outcome.attempts < _MAX_TRIES:
        # A fault of the API server says nothing of the workers, and each index that is lost counts.
        draft.retries.add(look)
        return None
    if outcome.error:
        return tuple(workers)
    used = outcome.result
    found = tuple(i for i in workers if view.pod_name(i) not in used) if used else ()
    if found and look.confirms and outcome.attempts == 1:
        # The first try follows at once upon what it is to confirm.
        draft.retries.add(look)
        return None
    return found


def drained(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> bool:
    """Tell whether nobody dials these workers any more, or has been given time enough."""
    launcher = state.launcher
    if not state.is_launched:
        return True
    there = frozenset(
        (state.pod_name(i), _pod_ip(one.pod))
        for i in operation.workers
        if (one := state.workers.get(i)) and one.pod and not one.pod.metadata.is_terminating
    )
    if not there:
        return True
    wait_s = state.left_s(operation, state.policy.drain_timeout_s)
    if wait_s <= 0:
        names = ", ".join(state.pod_names(operation.workers))
        message = f"the launcher still used {names} after {state.policy.drain_timeout_s:g} s"
        plan.notes.append(EventNote("Warning", "TrainingJobWorkersInUse", message))
        return True
    plan.waits_s.append(wait_s)
    if launcher is None or not hosts.is_written(state, plan.membership):
        return False
    task = CheckInUse(launcher, there)
    plan.exec_tasks.add(task)
    outcome = state.outcomes.get(task)
    if outcome is not None and (outcome.error or outcome.result):
        plan.retries.add(task)
        return False
    return outcome is not None


def pods_gone(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> bool:
    """Tell whether the pods of those that leave are gone; until then, have them deleted."""
    there = [one.pod for i in operation.workers if (one := state.workers.get(i)) and one.pod]
    plan.deleted_pods += [pod for pod in there if not pod.metadata.is_terminating]
    return not there


def _pod_ip(pod: Pod) -> str:
    return (pod.status.pod_ip if pod.status else None) or ""
