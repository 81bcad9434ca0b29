"""Workers that end while their job runs, and their replacements. Pure.

A worker that the launcher has used is replaced by one with another name: first at once, later after
a back-off that counts all predecessors. A worker that was never listed is created again.
"""

import datetime
import math

from dlctl.api.event_note import EventNote
from dlctl.api.job import WORKER, Replica
from dlctl.api.status.job_status import RestartRecord
from dlctl.reconcilers.lifecycle import replica_restarts
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import free_indexes
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState


def record_failures(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Retire the workers that have ended or are about to; each failure is recorded once."""
    failed = [
        one
        for index in _recorded(state)
        if (one := state.workers.get(index)) and _has_failed(state, index, one)
    ]
    if not failed:
        return plan
    # All at once: each copy of the plan takes as long as there are workers.
    restarts: dict[Replica, RestartRecord | None] = {}
    notes = []
    for one in failed:
        restart = _next_restart(state, one)
        replaceable = _is_replaceable(state, one) and not _is_beyond_limit(state, restart)
        # A worker whose restarts are recorded counts as one that will be replaced.
        restarts[one.replica] = restart if replaceable else None
        message = _failure_message(state.pod_name(one.replica.index), one)
        reason = state.job.messages.reason("WorkerFailed")
        notes.append(EventNote("Warning", reason, message))
    retired = plan.membership.retire(one.replica.index for one in failed)
    return plan.with_membership(retired).with_notes(*notes).with_restarts(restarts)


def replace_failed(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Add replacements of retired workers, within the limits and delays of the policy."""
    due, waits_s = _due(state, plan)
    successors = free_indexes(plan.membership, len(due), state.max_index)
    restarts: dict[Replica, RestartRecord | None] = {}
    notes = []
    for (index, restart), successor in zip(due, successors, strict=False):
        restarts |= {Replica(WORKER, successor): restart, Replica(WORKER, index): None}
        message = f"worker {state.pod_name(successor)} replaces {state.pod_name(index)}"
        notes.append(EventNote("Normal", state.job.messages.reason("WorkerCreated"), message))
    if successors:
        replaced = frozenset(index for index, _ in due[: len(successors)])
        plan = plan.with_membership(plan.membership.remove(replaced).add(successors))
    return plan.with_notes(*notes).with_restarts(restarts).with_requeue_after(*waits_s)


def _recorded(state: MembershipState) -> list[int]:
    """Return the workers whose failures are recorded; leaving ones only while they are listed."""
    membership = state.membership
    return [
        index
        for index in membership.members
        if index not in membership.retired
        if index in state.hosts or index not in membership.leaving
    ]


def _due(
    state: MembershipState, plan: MembershipPlan
) -> tuple[list[tuple[int, RestartRecord]], list[float]]:
    """Return the workers to replace now, and the seconds after which others are."""
    due: list[tuple[int, RestartRecord]] = []
    waits_s = []
    room = _room(state, plan)
    for index in state.membership.members:
        if len(due) >= room:
            break
        restart = plan.restarts.get(str(Replica(WORKER, index)))
        if index not in state.membership.retired or restart is None:
            continue
        if index in state.membership.leaving:
            # It is only replaced if its removal fails.
            continue
        if _is_beyond_limit(state, restart):
            continue
        wait_s = (
            state.settings.backoff.delay_s(restart.consecutive_ends - 1)
            if restart.consecutive_ends > 1
            else 0.0
        )
        replace_at = restart.finished_at + datetime.timedelta(seconds=wait_s)
        left_s = (replace_at - state.now).total_seconds()
        if wait_s and left_s > 0:
            waits_s.append(left_s)
        else:
            due.append((index, restart))
    return due, waits_s


def _room(state: MembershipState, plan: MembershipPlan) -> float:
    """Return how many workers a job may get, considering those being added."""
    max_replicas = state.elasticity.max_replicas
    if max_replicas is None:
        return math.inf
    current = sum(1 for i in plan.membership.present if i not in plan.membership.retired)
    return max_replicas - current


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
    return replica_restarts.next_restart(old, one, state.settings.backoff, state.now)


def _is_beyond_limit(state: MembershipState, restart: RestartRecord) -> bool:
    limit = state.elasticity.replacement_limit
    return limit is not None and restart.consecutive_ends > limit


def _is_replaceable(state: MembershipState, one: ObservedReplica) -> bool:
    evacuating = state.membership.evacuating
    if evacuating is not None and one.replica.index in evacuating.workers:
        # Its replacement is a member already.
        return False
    if one.state is ReplicaState.SUCCEEDED:
        return state.elasticity.replace_succeeded
    return state.elasticity.replace_failed and one.state is not ReplicaState.FAILED_PERMANENT


def _failure_message(pod: str, one: ObservedReplica) -> str:
    if one.termination is None:
        return f"worker {pod} was deleted"
    return f"worker {pod} has ended: {one.termination.reason}, {one.termination.message}"
