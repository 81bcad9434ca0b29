"""Moves workers off nodes that are about to be removed: replacements are created in time. Pure.

It waits for no other operation: the node would not wait either.
"""

from dlctl.api.event_note import EventNote
from dlctl.api.job import WORKER
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.membership import ScaleOperation
from dlctl.reconcilers.membership.drain import has_left
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import free_indexes, shown_names


def evacuate(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Evacuate workers from draining nodes, and add replacements as far as names allow."""
    evacuating = state.membership.evacuating
    if evacuating is not None:
        is_evacuated, plan = _is_evacuated(state, plan, evacuating)
        if is_evacuated:
            # Their processes may have ended before the launcher disconnected.
            left = plan.membership.remove(evacuating.workers).retire(evacuating.workers)
            return plan.with_membership(left.with_evacuating(None))
    return _evacuate_more(state, plan)


def complete(plan: MembershipPlan) -> MembershipPlan:
    """End an evacuation of a job whose pods are all deleted."""
    evacuating = plan.membership.evacuating
    if evacuating is None:
        return plan
    left = plan.membership.remove(evacuating.workers).with_evacuating(None)
    return plan.with_membership(left)


def _evacuate_more(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    leaving = state.membership.leaving
    # Unlisted workers stay until their nodes are removed: replacements might get no better nodes.
    listed = (i for i in state.alive if i in state.hosts and i not in leaving)
    draining = tuple(i for i in listed if state.on_draining_node(i))
    if not draining or state.launcher is None or state.job.status.phase is not JobPhase.RUNNING:
        return plan
    if state.job.failure_policy_decides(WORKER):
        # The policy restarts the whole job instead, or the worker.
        return plan
    earlier = state.membership.evacuating
    before, since = (earlier.workers, earlier.since) if earlier else ((), state.now)
    successors = free_indexes(plan.membership, len(draining), state.max_index)
    evacuating = ScaleOperation(False, (*before, *draining), since)
    plan = plan.with_membership(plan.membership.with_evacuating(evacuating).add(successors))
    left, coming = shown_names(state.pod_names(draining)), shown_names(state.pod_names(successors))
    message = f"the nodes of {left} are about to be removed: {coming} will replace them"
    return plan.with_notes(EventNote("Warning", state.job.messages.reason("NodeDraining"), message))


def _is_evacuated(
    state: MembershipState, plan: MembershipPlan, evacuating: ScaleOperation
) -> tuple[bool, MembershipPlan]:
    # Some stay listed until their replacements are ready.
    if state.hosts.intersection(evacuating.workers):
        return False, plan
    return has_left(state, plan, evacuating)
