"""Workers that end while their job runs, and their replacements. Pure.

A worker that the launcher has used is replaced by one with another name: first at once, later after
a back-off that counts all predecessors. A worker that was never listed is created again.
"""

import datetime

from dlctl.api.elastic import WORKER
from dlctl.api.job import Replica
from dlctl.api.status import RestartRecord
from dlctl.reconcilers.event_note import EventNote
from dlctl.reconcilers.lifecycle import replica_restarts
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import free_indexes
from dlctl.reconcilers.observe import ObservedReplica, ReplicaState


def record_failures(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Retire the workers that have ended or are about to; each failure is recorded once."""
    for index in state.alive:
        one = state.workers.get(index)
        if one and index not in state.membership.leaving and _has_failed(state, index, one):
            plan = _record_failure(state, plan, index, one)
    return plan


def _record_failure(
    state: MembershipState, plan: MembershipPlan, index: int, one: ObservedReplica
) -> MembershipPlan:
    restart = _next_restart(state, one)
    replaceable = _is_replaceable(state, one) and not _is_beyond_limit(state, restart)
    message = _failure_message(state.pod_name(index), one)
    plan = plan.with_membership(plan.membership.retire([index]))
    plan = plan.with_note(EventNote("Warning", state.job.messages.reason("WorkerFailed"), message))
    # A worker whose restarts are recorded counts as one that will be replaced.
    return plan.with_restart(one.replica, restart if replaceable else None)


def replace_failed(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Add replacements of retired workers, within the limits and delays of the policy."""
    for index in state.membership.members:
        restart = plan.restarts.get(str(Replica(WORKER, index)))
        if index in state.membership.retired and restart is not None:
            plan = _replace(state, plan, index, restart)
    return plan


def _replace(
    state: MembershipState, plan: MembershipPlan, index: int, restart: RestartRecord
) -> MembershipPlan:
    if _is_beyond_limit(state, restart) or _at_max(state, plan):
        return plan
    wait_s = state.policy.backoff.delay_s(restart.attempts - 1) if restart.attempts > 1 else 0.0
    replace_at = restart.finished_at + datetime.timedelta(seconds=wait_s)
    left_s = (replace_at - state.now).total_seconds()
    if wait_s and left_s > 0:
        return plan.with_wait(left_s)
    successor = next(iter(free_indexes(plan.membership, 1, state.max_index)), None)
    if successor is None:
        return plan
    plan = plan.with_membership(plan.membership.remove([index]).add([successor]))
    plan = plan.with_restart(Replica(WORKER, successor), restart)
    plan = plan.with_restart(Replica(WORKER, index), None)
    message = f"worker {state.pod_name(successor)} replaces {state.pod_name(index)}"
    return plan.with_note(EventNote("Normal", state.job.messages.reason("WorkerCreated"), message))


def _at_max(state: MembershipState, plan: MembershipPlan) -> bool:
    """Return whether the job has its maximum number of workers, including those being added."""
    max_replicas = state.elasticity.max_replicas
    current = [i for i in plan.membership.present if i not in plan.membership.retired]
    return max_replicas is not None and len(current) >= max_replicas


def _has_failed(state: MembershipState, index: int, one: ObservedReplica) -> bool:
    if index in state.hosts:
        return one.state not in (ReplicaState.RUNNING, ReplicaState.PENDING)
    if (
        one.state is ReplicaState.FAILED_RETRYABLE
        and one.pod is not None
        and one.termination is not None
    ):
        # It is created again under its name, within the same limit as replacements.
        return _is_beyond_limit(state, _next_restart(state, one))
    return one.state in (ReplicaState.FAILED_PERMANENT, ReplicaState.SUCCEEDED)


def _next_restart(state: MembershipState, one: ObservedReplica) -> RestartRecord:
    """Return the restarts of a worker after its newest failure."""
    old = state.job.status.restarts.get(str(one.replica))
    return replica_restarts.next_restart(old, one, state.policy.backoff, state.now)


def _is_beyond_limit(state: MembershipState, restart: RestartRecord) -> bool:
    limit = state.elasticity.replacement_limit
    return limit is not None and restart.attempts > limit


def _is_replaceable(state: MembershipState, one: ObservedReplica) -> bool:
    if one.state is ReplicaState.SUCCEEDED:
        return state.elasticity.replace_succeeded
    return state.elasticity.replace_failed and one.state is not ReplicaState.FAILED_PERMANENT


def _failure_message(pod: str, one: ObservedReplica) -> str:
    if one.termination is None:
        return f"worker {pod} was deleted"
    return f"worker {pod} has ended: {one.termination.reason}, {one.termination.message}"
