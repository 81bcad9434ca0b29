"""Scale-out: new workers become hosts once the launcher reaches them. Pure."""

from collections.abc import Sequence

import attrs

from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler
from dlctl.api.status.membership import ScaleOperation
from dlctl.reconcilers.membership import hosts
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.scaling import end_operation, has_hosts, with_added
from dlctl.reconcilers.membership.scripts import run_script
from dlctl.reconcilers.membership.selection import shown_names
from dlctl.reconcilers.observed_replica import ReplicaState


def scale_out(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """Advance an operation that adds workers by one step."""
    scaler = state.scaler(operation.uid)
    if operation.is_done:
        return _await_host_update(state, plan, operation, scaler)
    if scaler is not None:
        return _scale_out_by_scaler(state, plan, operation, scaler)
    if operation.uid:
        # No scaler requests the workers any more, and the launcher does not know them yet.
        return end_operation(state, plan, operation, ScaleFailure("it was deleted"))
    return _scale_out_by_spec(state, plan, operation)


def _scale_out_by_scaler(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> MembershipPlan:
    """List all new workers at once, so that training is interrupted only once."""
    if failed := [i for i in operation.workers if _has_failed(state, i)]:
        return _retry(state, plan, operation, scaler, failed)
    if operation.is_ready:
        return _list_arrived(state, plan, operation, scaler)
    arrived, plan = _arrived(state, plan, operation, scaler)
    if arrived is None:
        return plan
    if not arrived:
        reasons = hosts.unreachable_message(state, operation.workers)
        failure = ScaleFailure(reasons, FailedStep.AWAIT_WORKERS)
        return end_operation(state, plan, operation, failure)
    if scaler.script or len(arrived) < len(operation.workers):
        # Persisted first: the running script knows only these workers, even if others come late.
        ready = attrs.evolve(operation, workers=arrived, is_ready=True)
        return plan.with_membership(plan.membership.with_scaling(ready))
    return _list_arrived(state, plan, operation, scaler)


def _scale_out_by_spec(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """Add the workers that the spec requests once they are reachable; late ones join later."""
    wait_s = state.left_s(operation, state.settings.scale_out_timeout_s)
    found, plan = _reachable(state, plan, operation, wait_s)
    changed = state.desired_replicas != state.membership.observed_replicas
    if len(found) < len(operation.workers) and wait_s > 0 and not changed:
        return plan.with_requeue_after(wait_s)
    membership = plan.membership.add(operation.workers)
    listed = membership.with_hosts((*membership.hosts, *found))
    return end_operation(state, plan.with_membership(listed), operation)


def _reachable(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, wait_s: float
) -> tuple[frozenset[int], MembershipPlan]:
    """Return the reachable workers, probed all together or at the timeout.

    A probe for each worker that becomes ready would run several in the launcher at once.
    """
    if wait_s > 0 and not all(state.is_ready(worker) for worker in operation.workers):
        return frozenset(), plan
    return hosts.reachable(state, plan, operation.workers)


def _arrived(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> tuple[tuple[int, ...] | None, MembershipPlan]:
    """Return the workers to add, once decided; () if too few came, None if undecided."""
    wait_s = state.left_s(operation, _timeout_s(state, scaler))
    found, plan = _reachable(state, plan, operation, wait_s)
    if len(found) == len(operation.workers):
        return tuple(sorted(found)), plan
    if wait_s > 0:
        return None, plan.with_requeue_after(wait_s)
    if hosts.is_probing(state, operation.workers):
        # Also after a restart of the controller: it must not discard workers that came in time.
        return None, plan
    min_count = len(operation.workers) if scaler.min_count is None else scaler.min_count
    return tuple(sorted(found)) if found and len(found) >= min_count else (), plan


def _list_arrived(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> MembershipPlan:
    """List the new workers as hosts, after the scaler's script if it has one."""
    if scaler.script:
        result, plan = run_script(state, plan, operation, scaler)
        if result.failure:
            return end_operation(state, plan, operation, result.failure)
        if not result.is_finished:
            return plan
    membership = plan.membership.with_scaling(attrs.evolve(operation, is_done=True))
    listed = membership.with_hosts((*membership.hosts, *operation.workers))
    return plan.with_membership(listed)


def _await_host_update(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler | None
) -> MembershipPlan:
    """End an operation whose workers are listed, once the launcher has the list or at the timeout.

    The workers stay members in both cases: the launcher may have the list.
    """
    written = has_hosts(state, plan)
    wait_s = state.left_s(operation, _timeout_s(state, scaler) + state.settings.drain_timeout_s)
    if not written and wait_s > 0:
        return plan.with_requeue_after(wait_s)
    if hosts.is_writing(state, plan.membership):
        # A controller that was down when the time ended has only just begun.
        return plan
    failure = ScaleFailure("the launcher's host file was not updated in time")
    return end_operation(
        state, with_added(plan, operation), operation, None if written else failure
    )


def _timeout_s(state: MembershipState, scaler: Scaler | None) -> float:
    own_s = scaler.timeout_s if scaler else None
    return state.settings.scale_out_timeout_s if own_s is None else own_s


def _has_failed(state: MembershipState, worker: int) -> bool:
    one = state.workers.get(worker)
    if one is None or one.pod is None or one.pod.metadata.is_terminating:
        # A terminating pod was counted before it was deleted.
        return False
    return one.state in (ReplicaState.FAILED_PERMANENT, ReplicaState.SUCCEEDED)


def _retry(
    state: MembershipState,
    plan: MembershipPlan,
    operation: ScaleOperation,
    scaler: Scaler,
    failed: Sequence[int],
) -> MembershipPlan:
    if operation.failures >= scaler.backoff_limit:
        names = shown_names(state.pod_names(failed))
        failure = ScaleFailure(f"{names} ended before the launcher could use them")
        return end_operation(state, plan, operation, failure)
    backoff_s = _backoff_left_s(state, operation, failed)
    wait_s = state.left_s(operation, _timeout_s(state, scaler))
    if backoff_s > 0 and wait_s > 0:
        # The failed pods stay until then, so that their logs can be read.
        return plan.with_requeue_after(backoff_s, wait_s)
    again = attrs.evolve(operation, failures=operation.failures + 1)
    plan = plan.with_deleted_pods(state.pods(failed))
    return plan.with_membership(plan.membership.with_scaling(again))


def _backoff_left_s(
    state: MembershipState, operation: ScaleOperation, failed: Sequence[int]
) -> float:
    """Return the seconds until failed workers may be created again; the first time at once."""
    delay_s = state.settings.backoff.delay_s(operation.failures)
    terminations = (state.workers[worker].termination for worker in failed)
    last = max((end.time for end in terminations if end is not None), default=state.now)
    # The clock of a node may be ahead.
    return min(delay_s - (state.now - last).total_seconds(), delay_s)
