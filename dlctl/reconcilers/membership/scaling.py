"""Scale operations requested by the spec or a scaler: one at a time, the oldest first. Pure.

The workers of an operation are persisted before it has any effect, and never chosen again.
"""

from collections.abc import Sequence

import attrs

from dlctl.api.elastic import (
    FailedStep,
    ScaleFailure,
    ScaleOperation,
    Scaler,
    ScalerPhase,
    worker_indexes,
)
from dlctl.reconcilers.membership import hosts, scaler_status
from dlctl.reconcilers.membership.drain import has_left, unused_workers
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.scripts import run_script
from dlctl.reconcilers.membership.selection import (
    ScaleRejectedError,
    choose_added,
    choose_last,
    choose_removed,
    free_indexes,
)
from dlctl.reconcilers.observe import ReplicaState


def adopt(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Continue an operation that another operator has started, with the workers it chose."""
    if not state.job.status.written_by_other_operator or state.membership.scaling is not None:
        return plan
    for scaler in state.scalers:
        workers = worker_indexes(scaler.status.pods, state.job.status.worker_name_prefix)
        has_started = (
            workers and not scaler.invalid_reason and scaler.status.phase is ScalerPhase.SCALING
        )
        left = len(set(state.alive) - set(workers))
        if has_started and (scaler.is_scale_out or left >= state.elasticity.min_replicas):
            operation = _operation(state, scaler, workers)
            return plan.with_membership(plan.membership.with_scaling(operation))
    return plan


def start(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Start the next requested operation: from the spec, or from a scaler."""
    if state.desired_replicas != state.membership.observed_replicas:
        return _follow_spec(state, plan)
    for scaler in state.scalers:
        if scaler.invalid_reason:
            continue
        try:
            return _start(state, plan, _operation(state, scaler, _choose(state, scaler)))
        except ScaleRejectedError as error:
            plan = _reject(state, plan, scaler, str(error))
    return plan


def scale_in(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """Advance an operation that removes workers by one step."""
    scaler = state.scaler(operation.uid)
    if not operation.ready:
        return _check_leaving(state, plan, operation)
    if scaler and scaler.script and not operation.done:
        return _run_leaving_script(state, plan, operation, scaler)
    if scaler and not scaler.script and _has_hosts(state, plan):
        plan = scaler_status.script_executed(plan, scaler)
    is_gone, plan = has_left(state, plan, operation)
    return _finish(state, _remove(plan, operation), operation) if is_gone else plan


def scale_out(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """Advance an operation that adds workers by one step."""
    scaler = state.scaler(operation.uid)
    if operation.done:
        return _await_host_update(state, plan, operation, scaler)
    if scaler is not None:
        return _scale_out_by_scaler(state, plan, operation, scaler)
    if operation.uid:
        # No scaler requests the workers any more, and the launcher does not know them yet.
        return _finish(state, plan, operation, ScaleFailure("it was deleted"))
    return _scale_out_by_spec(state, plan, operation)


def finish(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """End an operation whose scaler is finished: the controller ended before updating the job."""
    finished = [one for one in state.finished_scalers if one.uid == operation.uid]
    if any(one.succeeded for one in finished):
        plan = _add(plan, operation) if operation.is_scale_out else _remove(plan, operation)
    for condition in (c for one in finished for c in one.status.conditions):
        if condition.type in (ScalerPhase.SUCCEEDED, ScalerPhase.FAILED):
            plan = plan.with_condition(condition)
    return plan.with_membership(plan.membership.with_scaling(None))


def complete(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """End an operation of a job whose pods are all deleted; the members become as requested."""
    operation = plan.membership.scaling
    if operation is None:
        return plan
    if operation.is_scale_out:
        return _finish(state, _add(plan, operation), operation)
    left = plan.membership.remove(operation.workers)
    return _finish(state, plan.with_membership(left), operation)


def _operation(state: MembershipState, scaler: Scaler, workers: tuple[int, ...]) -> ScaleOperation:
    return ScaleOperation(scaler.is_scale_out, workers, state.now, scaler.full_name, scaler.uid)


def _choose(state: MembershipState, scaler: Scaler) -> tuple[int, ...]:
    if scaler.is_scale_out:
        return choose_added(state, scaler.count or 0)
    return choose_removed(state, scaler)


def _reject(
    state: MembershipState, plan: MembershipPlan, scaler: Scaler, reason: str
) -> MembershipPlan:
    """Fail a scaler whose request cannot be met."""
    failure = ScaleFailure(reason, FailedStep.SELECT_WORKERS)
    plan = scaler_status.rejected(plan, scaler, failure)
    name, reported = scaler.full_name, state.dialect.conditions
    plan = plan.with_condition(reported.scaling(state.job, name, state.now))
    return plan.with_condition(reported.scaling_finished(state.job, name, state.now, failure))


def _follow_spec(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Start the operation that changes the number of workers to that in the spec."""
    more = state.desired_replicas - len(state.alive)
    plan = plan.with_membership(
        attrs.evolve(plan.membership, observed_replicas=state.desired_replicas)
    )
    if more > 0:
        added = free_indexes(state.membership, more, state.max_index)
        return _start(state, plan, ScaleOperation(True, added, state.now))
    if more < 0:
        return _start(state, plan, ScaleOperation(False, choose_last(state, -more), state.now))
    return plan


def _start(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    plan = plan.with_membership(plan.membership.with_scaling(operation))
    plan = plan.with_condition(
        state.dialect.conditions.scaling(state.job, operation.scaler, state.now)
    )
    scaler = state.scaler(operation.uid)
    if scaler is None:
        return plan
    return scaler_status.scaling_started(plan, scaler, state.pod_names(operation.workers))


def _check_leaving(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """Record unused workers while all are in the host file; without a script, they leave it."""
    unused, plan = unused_workers(state, plan, operation)
    if unused is None:
        return plan
    checked = attrs.evolve(operation, ready=True, unused=unused)
    membership = plan.membership.with_scaling(checked)
    scaler = state.scaler(operation.uid)
    if not (scaler and scaler.script):
        stay = (i for i in membership.hosts if i not in operation.workers)
        membership = membership.with_hosts(stay)
    return plan.with_membership(membership)


def _run_leaving_script(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> MembershipPlan:
    result, plan = run_script(state, plan, operation, scaler)
    if result.failure:
        return _finish(state, plan, operation, result.failure)
    if result.is_finished:
        # The workers are removed once it is persisted that the script has run.
        done = attrs.evolve(operation, done=True)
        return plan.with_membership(plan.membership.with_scaling(done))
    return plan


def _add(plan: MembershipPlan, operation: ScaleOperation) -> MembershipPlan:
    return plan.with_membership(plan.membership.add(operation.workers))


def _remove(plan: MembershipPlan, operation: ScaleOperation) -> MembershipPlan:
    left = plan.membership.remove(operation.workers).retire(operation.unused)
    return plan.with_membership(left)


def _finish(
    state: MembershipState,
    plan: MembershipPlan,
    operation: ScaleOperation,
    failure: ScaleFailure | None = None,
) -> MembershipPlan:
    """End an operation; the new workers of a failed one do not become members."""
    plan = plan.with_membership(plan.membership.with_scaling(None))
    plan = plan.with_condition(
        state.dialect.conditions.scaling_finished(state.job, operation.scaler, state.now, failure)
    )
    scaler = state.scaler(operation.uid)
    return scaler_status.scaling_finished(plan, scaler, failure) if scaler else plan


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
        return None, plan.with_wait(wait_s)
    if hosts.is_probing(state, operation.workers):
        # Also after a restart of the controller: it must not discard workers that came in time.
        return None, plan
    min_count = len(operation.workers) if scaler.min_count is None else scaler.min_count
    return tuple(sorted(found)) if found and len(found) >= min_count else (), plan


def _scale_out_by_scaler(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> MembershipPlan:
    """List all new workers at once, so that training is interrupted only once."""
    if failed := [i for i in operation.workers if _has_failed(state, i)]:
        return _retry(state, plan, operation, scaler, failed)
    if operation.ready:
        return _list_arrived(state, plan, operation, scaler)
    arrived, plan = _arrived(state, plan, operation, scaler)
    if arrived is None:
        return plan
    if not arrived:
        reasons = hosts.unreachable_message(state, operation.workers)
        failure = ScaleFailure(reasons, FailedStep.AWAIT_WORKERS)
        return _finish(state, plan, operation, failure)
    if scaler.script or len(arrived) < len(operation.workers):
        # Persisted first: the running script knows only these workers, even if others come late.
        ready = attrs.evolve(operation, workers=arrived, ready=True)
        return plan.with_membership(plan.membership.with_scaling(ready))
    return _list_arrived(state, plan, operation, scaler)


def _list_arrived(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> MembershipPlan:
    """List the new workers as hosts, after the scaler's script if it has one."""
    if scaler.script:
        result, plan = run_script(state, plan, operation, scaler)
        if result.failure:
            return _finish(state, plan, operation, result.failure)
        if not result.is_finished:
            return plan
    membership = plan.membership.with_scaling(attrs.evolve(operation, done=True))
    listed = membership.with_hosts((*membership.hosts, *operation.workers))
    return plan.with_membership(listed)


def _await_host_update(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler | None
) -> MembershipPlan:
    """End an operation whose workers are listed, once the launcher has the list or at the timeout.

    The workers stay members in both cases: the launcher may have the list.
    """
    written = _has_hosts(state, plan)
    wait_s = state.left_s(operation, _timeout_s(state, scaler) + state.policy.drain_timeout_s)
    if not written and wait_s > 0:
        return plan.with_wait(wait_s)
    failure = ScaleFailure("the launcher's host file was not updated in time")
    return _finish(state, _add(plan, operation), operation, None if written else failure)


def _has_hosts(state: MembershipState, plan: MembershipPlan) -> bool:
    """Return whether no launcher runs that has other hosts than planned."""
    return state.launcher is None or hosts.is_written(state, plan.membership)


def _timeout_s(state: MembershipState, scaler: Scaler | None) -> float:
    own_s = scaler.timeout_s if scaler else None
    return state.policy.scale_out_timeout_s if own_s is None else own_s


def _scale_out_by_spec(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """Add the workers that the spec requests once they are reachable; late ones join later."""
    wait_s = state.left_s(operation, state.policy.scale_out_timeout_s)
    found, plan = _reachable(state, plan, operation, wait_s)
    changed = state.desired_replicas != state.membership.observed_replicas
    if len(found) < len(operation.workers) and wait_s > 0 and not changed:
        return plan.with_wait(wait_s)
    membership = plan.membership.add(operation.workers)
    listed = membership.with_hosts((*membership.hosts, *found))
    return _finish(state, plan.with_membership(listed), operation)


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
        names = ", ".join(state.pod_names(failed))
        failure = ScaleFailure(f"{names} ended before the launcher could use them")
        return _finish(state, plan, operation, failure)
    again = attrs.evolve(operation, failures=operation.failures + 1)
    plan = plan.with_deleted_pods(state.pods(failed))
    return plan.with_membership(plan.membership.with_scaling(again))
