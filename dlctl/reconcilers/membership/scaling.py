"""Scale operations requested by the spec or a scaler: one at a time, the oldest first. Pure.

The workers of an operation are persisted before it has any effect, and never chosen again.
"""

import attrs

from dlctl.api.job import WORKER, Replica
from dlctl.api.objects.scalers import FailedStep, ScaleFailure, Scaler, ScalerPhase
from dlctl.api.status import conditions
from dlctl.api.status.membership import ScaleOperation, worker_indexes
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
    if not operation.is_ready:
        return _check_leaving(state, plan, operation)
    if scaler and scaler.script and not operation.is_done:
        return _run_leaving_script(state, plan, operation, scaler)
    if scaler and not scaler.script and has_hosts(state, plan):
        plan = scaler_status.script_executed(plan, scaler)
    is_gone, plan = has_left(state, plan, operation)
    return end_operation(state, _remove(plan, operation), operation) if is_gone else plan


def finish(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> MembershipPlan:
    """End an operation whose scaler is finished: the controller ended before updating the job."""
    finished = [one for one in state.finished_scalers if one.uid == operation.uid]
    if any(one.succeeded for one in finished):
        plan = with_added(plan, operation) if operation.is_scale_out else _remove(plan, operation)
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
        return end_operation(state, with_added(plan, operation), operation)
    left = plan.membership.remove(operation.workers)
    return end_operation(state, plan.with_membership(left), operation)


def end_operation(
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


def with_added(plan: MembershipPlan, operation: ScaleOperation) -> MembershipPlan:
    """Return the plan with the workers of an operation as members."""
    return plan.with_membership(plan.membership.add(operation.workers))


def has_hosts(state: MembershipState, plan: MembershipPlan) -> bool:
    """Return whether no launcher runs that has other hosts than planned."""
    return state.launcher is None or hosts.is_written(state, plan.membership)


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
    finished = reported.scaling_finished(state.job, name, state.now, failure)
    before = conditions.find(state.job.status.conditions, finished.type)
    if before and before.message == finished.message and before.last_update_time >= scaler.created:
        # The job has them already: writing them again would also wake it again.
        return plan
    return plan.with_condition(reported.scaling(state.job, name, state.now)).with_condition(
        finished
    )


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
    checked = attrs.evolve(operation, is_ready=True, unused=unused)
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
        return end_operation(state, plan, operation, result.failure)
    if result.is_finished:
        # The workers are removed once it is persisted that the script has run.
        done = attrs.evolve(operation, is_done=True)
        return plan.with_membership(plan.membership.with_scaling(done))
    return plan


def _remove(plan: MembershipPlan, operation: ScaleOperation) -> MembershipPlan:
    left = plan.membership.remove(operation.workers).retire(operation.unused)
    ended = {Replica(WORKER, index): None for index in operation.workers}
    return plan.with_membership(left).with_restarts(ended)
