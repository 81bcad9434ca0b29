"""Removal of workers: their pods are deleted once the launcher has disconnected. Pure."""

import datetime
from collections.abc import Collection, Sequence
from typing import Final

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.objects.pods import Pod
from dlctl.api.status.membership import ScaleOperation
from dlctl.reconcilers.membership import hosts
from dlctl.reconcilers.membership.exec_tasks import CheckInUse
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import shown_names

_MAX_TRIES: Final = 5


def unused_workers(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> tuple[tuple[int, ...] | None, MembershipPlan]:
    """Return the leaving workers that the launcher does not use although it uses others.

    None while this is unknown; the plan includes the checks for it. There are two, some time apart,
    because a launcher that connects to its workers one after another uses some of them earlier than
    others. If the launcher cannot be inspected after retries, all of them count as unused.
    """
    leaving = tuple(i for i in operation.workers if i in state.hosts and state.pod(i))
    if state.launcher is None or not leaving:
        return (), plan
    check = CheckInUse(state.launcher, _addresses(state, state.pods(state.membership.hosts)))
    found, plan = _unused(state, plan, check, leaving)
    if not found:
        return found, plan
    return _unused(state, plan, attrs.evolve(check, confirms=True), found)


def has_left(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> tuple[bool, MembershipPlan]:
    """Return whether the pods of the leaving workers are gone, and the plan to delete them.

    They are deleted once the launcher has disconnected, or the scaler's script has run.
    """
    is_drained, plan = (True, plan) if operation.is_done else _drained(state, plan, operation)
    if not is_drained:
        return False, plan
    remaining = state.pods(operation.workers)
    return not remaining, plan.with_deleted_pods(remaining)


def _unused(
    state: MembershipState, plan: MembershipPlan, check: CheckInUse, workers: Sequence[int]
) -> tuple[tuple[int, ...] | None, MembershipPlan]:
    """Return the given workers that the launcher does not use; None while this is unknown."""
    outcome = state.outcomes.get(check)
    if outcome is None:
        return None, plan.with_exec_task(check)
    if outcome.error and outcome.attempts < _MAX_TRIES:
        # Errors of the API server are unrelated to workers, and each lost index counts.
        return None, plan.with_exec_task(check, retry=True)
    if outcome.error:
        return tuple(workers), plan.with_exec_task(check)
    used = outcome.result if isinstance(outcome.result, frozenset) else frozenset[str]()
    found = tuple(i for i in workers if state.pod_name(i) not in used) if used else ()
    if found and check.confirms and outcome.attempts == 1:
        # The first attempt follows immediately after the check that it should confirm.
        return None, plan.with_exec_task(check, retry=True)
    return found, plan.with_exec_task(check)


def _drained(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> tuple[bool, MembershipPlan]:
    """Return whether the launcher has disconnected from these workers, or its time is up."""
    remaining = [p for p in state.pods(operation.workers) if not p.metadata.is_terminating]
    if not state.is_launched or not remaining:
        return True, plan
    wait_s = _left_s(state, plan, operation)
    if wait_s <= 0:
        names = shown_names(state.pod_names(operation.workers))
        message = f"the launcher still used {names} after {state.settings.drain_timeout_s:g} s"
        return True, plan.with_notes(
            EventNote("Warning", state.job.messages.reason("WorkersInUse"), message)
        )
    plan = plan.with_requeue_after(wait_s)
    if state.launcher is None or not hosts.is_written(state, plan.membership):
        return False, plan
    check = CheckInUse(state.launcher, _addresses(state, remaining))
    outcome = state.outcomes.get(check)
    in_use = outcome is not None and bool(outcome.error or outcome.result)
    return outcome is not None and not in_use, plan.with_exec_task(check, retry=in_use)


def _left_s(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> float:
    """Return the seconds that the launcher has left to disconnect.

    It has half of its time at least with the hosts: an outage of the controller may be longer.
    """
    limit_s = state.settings.drain_timeout_s
    left_s = state.left_s(operation, limit_s)
    if hosts.is_writing(state, plan.membership):
        return max(left_s, limit_s / 2)
    outcome = hosts.write_outcome(state, plan.membership)
    if outcome is None or not isinstance(outcome.result, datetime.datetime):
        return left_s
    return max(left_s, limit_s / 2 - (state.now - outcome.result).total_seconds())


def _addresses(state: MembershipState, pods: Collection[Pod]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (pod.metadata.name, (pod.status.pod_ip if pod.status else None) or "") for pod in pods
    )
