"""Workers on nodes that are about to go: they leave in time, and others take their places. Pure.

It waits for no other change: a node that goes does not either.
"""

import attrs

from dlctl.api.elastic import ScaleOperation
from dlctl.api.status import JobPhase
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.membership.drain import drained, pods_gone
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import free_indexes


def evacuate(state: MembershipState, plan: MembershipPlan) -> None:
    """Take workers off such nodes; their successors come when there is room for them."""
    evacuating = state.membership.evacuating
    if evacuating is not None and _is_evacuated(state, plan, evacuating):
        plan.remove(*evacuating.workers)
        for index in evacuating.workers:
            # Their processes may have ended before the launcher let go of them.
            plan.retire(index)
        plan.membership = attrs.evolve(plan.membership, evacuating=None)
        return
    leaving = state.membership.leaving
    # Those that nobody uses yet stay until their nodes go: others might come to no better ones.
    listed = (i for i in state.alive if i in state.hosts and i not in leaving)
    draining = tuple(i for i in listed if state.on_draining_node(i))
    if not draining or state.launcher is None or state.job.status.phase is not JobPhase.RUNNING:
        return
    before = evacuating.workers if evacuating else ()
    since = evacuating.since if evacuating else state.now
    successors = free_indexes(plan.membership, len(draining), state.max_index)
    evacuation = ScaleOperation(False, (*before, *draining), since)
    plan.membership = attrs.evolve(plan.membership, evacuating=evacuation)
    plan.add(*successors)
    left, coming = ", ".join(state.pod_names(draining)), ", ".join(state.pod_names(successors))
    message = f"the nodes of {left} are about to go: {coming} will take their places"
    plan.notes.append(EventNote("Warning", "TrainingJobNodeGoing", message))


def _is_evacuated(state: MembershipState, plan: MembershipPlan, evacuating: ScaleOperation) -> bool:
    # Some are listed until others have come.
    if set(evacuating.workers).intersection(state.membership.hosts):
        return False
    return drained(state, plan, evacuating) and pods_gone(state, plan, evacuating)


def complete(plan: MembershipPlan) -> None:
    """Leave it at that, where all pods of the job go."""
    if plan.membership.evacuating is not None:
        plan.remove(*plan.membership.evacuating.workers)
        plan.membership = attrs.evolve(plan.membership, evacuating=None)
