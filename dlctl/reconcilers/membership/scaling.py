"""Workers that come and go because somebody asks for it: one change at a time, oldest first. Pure.

What a change is about is written down before anything is done for it, and it alone is acted on.
"""

from collections.abc import Sequence

import attrs

from dlctl.api.elastic import ScaleOperation, Scaler, ScalerPhase
from dlctl.dialects.et_operator import training_conditions
from dlctl.dialects.et_operator.training_status import worker_indexes
from dlctl.reconcilers.membership import drain, hosts, scaler_status, scripts
from dlctl.reconcilers.membership.drain import drained, pods_gone
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import (
    ScaleRejectedError,
    choose_added,
    choose_last,
    choose_removed,
    free_indexes,
)
from dlctl.reconcilers.observe import ReplicaState


def adopt(state: MembershipState, plan: MembershipPlan) -> None:
    """Go on with what another operator was about, with the workers that it had chosen."""
    if not state.job.status.written_by_other_operator or state.membership.scaling is not None:
        return
    for scaler in state.scalers:
        workers = worker_indexes(list(scaler.status.pods), state.job.key.name)
        has_started = (
            workers and not scaler.invalid_reason and scaler.status.phase is ScalerPhase.SCALING
        )
        left = len(set(state.alive) - set(workers))
        if has_started and (scaler.is_scale_out or left >= state.elasticity.min_replicas):
            name, uid = scaler.full_name, scaler.uid
            operation = ScaleOperation(scaler.is_scale_out, workers, state.now, name, uid)
            plan.membership = attrs.evolve(plan.membership, scaling=operation)
            return


def start(state: MembershipState, plan: MembershipPlan) -> None:
    """Begin the next change that is asked for: by the spec, or by a scaler."""
    if state.desired_replicas != state.membership.observed_replicas:
        _follow_spec(state, plan)
    else:
        for scaler in state.scalers:
            if not scaler.invalid_reason and _start(state, plan, scaler):
                break


def scale_in(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> None:
    """Take the change one step further by which workers go."""
    scaler = state.scaler(operation.uid)
    if not operation.ready:
        _check_leaving(state, plan, operation)
        return
    if scaler and scaler.script and not operation.done:
        if (failure := scripts.run_script(state, plan, operation, scaler)) is not None:
            if failure:
                _finish(state, plan, operation, failure)
            return
        operation = attrs.evolve(operation, done=True)
        plan.membership = attrs.evolve(plan.membership, scaling=operation)
        # What follows from it is for when it has been written down.
        return
    if (operation.done or drained(state, plan, operation)) and pods_gone(state, plan, operation):
        _remove(plan, operation)
        _finish(state, plan, operation)


def scale_out(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> None:
    """Take the change one step further by which workers come."""
    scaler = state.scaler(operation.uid)
    if operation.done:
        _await_host_update(state, plan, operation, scaler)
    elif scaler is not None:
        _scale_out_by_scaler(state, plan, operation, scaler)
    elif operation.uid:
        # Nobody wants them any more; nobody knows them yet.
        _finish(state, plan, operation, "it was deleted")
    else:
        _scale_out_by_spec(state, plan, operation)


def finish(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> None:
    """End a change whose scaler was told its result before the controller itself ended."""
    ok = any(one.uid == operation.uid and one.succeeded for one in state.finished_scalers)
    if operation.is_scale_out and ok:
        plan.add(*operation.workers)
    elif not operation.is_scale_out and ok:
        _remove(plan, operation)
    _finish(state, plan, operation, "" if ok else "it has failed")


def complete(state: MembershipState, plan: MembershipPlan) -> None:
    """End a change of a job whose pods all go: the next ones will be as it wanted."""
    operation = plan.membership.scaling
    if operation is None:
        return
    if operation.is_scale_out:
        plan.add(*operation.workers)
    else:
        plan.remove(*operation.workers)
    _finish(state, plan, operation)


def _start(state: MembershipState, plan: MembershipPlan, scaler: Scaler) -> bool:
    """Begin what a scaler asks for; if it cannot be, the scaler has failed."""
    try:
        chosen = (
            choose_added(state, scaler.count or 0)
            if scaler.is_scale_out
            else choose_removed(state, scaler)
        )
    except ScaleRejectedError as error:
        scaler_status.scaling_finished(plan, scaler, state.now, str(error))
        plan.conditions.append(
            training_conditions.scaling_finished(state.job, scaler.full_name, state.now, ok=False)
        )
        return False
    _start_operation(
        state,
        plan,
        ScaleOperation(scaler.is_scale_out, chosen, state.now, scaler.full_name, scaler.uid),
    )
    return True


def _follow_spec(state: MembershipState, plan: MembershipPlan) -> None:
    """Begin what brings the number of workers to that in the spec."""
    more = state.desired_replicas - len(state.alive)
    plan.membership = attrs.evolve(plan.membership, observed_replicas=state.desired_replicas)
    if more > 0:
        _start_operation(
            state,
            plan,
            ScaleOperation(True, free_indexes(state.membership, more, state.max_index), state.now),
        )
    elif more < 0:
        _start_operation(state, plan, ScaleOperation(False, choose_last(state, -more), state.now))


def _start_operation(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> None:
    plan.membership = attrs.evolve(plan.membership, scaling=operation)
    scaler = state.scaler(operation.uid)
    plan.conditions.append(training_conditions.scaling(state.job, operation.scaler, state.now))
    if scaler is not None:
        scaler_status.scaling_started(plan, scaler, state.pod_names(operation.workers), state.now)


def _check_leaving(state: MembershipState, plan: MembershipPlan, operation: ScaleOperation) -> None:
    """Note who is not in use, while all are in the host file; without a script, they leave it."""
    unused = drain.unused_workers(state, plan, operation)
    if unused is None:
        return
    looked_at = attrs.evolve(operation, ready=True, unused=unused)
    plan.membership = attrs.evolve(plan.membership, scaling=looked_at)
    scaler = state.scaler(operation.uid)
    if not (scaler and scaler.script):
        plan.set_hosts(*(i for i in plan.membership.hosts if i not in operation.workers))


def _remove(plan: MembershipPlan, operation: ScaleOperation) -> None:
    plan.remove(*operation.workers)
    for index in operation.unused:
        plan.retire(index)


def _finish(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, failure: str = ""
) -> None:
    """End a change; of workers that came to no good, nothing is left."""
    plan.membership = attrs.evolve(plan.membership, scaling=None)
    ended = training_conditions.scaling_finished(
        state.job, operation.scaler, state.now, ok=not failure
    )
    plan.conditions.append(ended)
    scaler = state.scaler(operation.uid)
    if scaler is not None:
        scaler_status.scaling_finished(plan, scaler, state.now, failure)


def _reachable(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, wait_s: float
) -> frozenset[int]:
    """Return those that answer; the launcher is asked for all at once, or when time is up.

    What was asked for each that becomes ready would go on in it, one command beside the other.
    """
    if wait_s > 0 and not all(state.is_ready(worker) for worker in operation.workers):
        return frozenset()
    return hosts.reachable(state, plan, operation.workers)


def _arrived(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> tuple[int, ...] | None:
    """Return those that came, when it is decided; none if they are too few, None if it is not."""
    wait_s = state.left_s(operation, _timeout_s(state, scaler))
    reachable_workers = tuple(sorted(_reachable(state, plan, operation, wait_s)))
    if len(reachable_workers) == len(operation.workers):
        return reachable_workers
    if wait_s > 0:
        plan.waits_s.append(wait_s)
        return None
    if hosts.is_probing(state, operation.workers):
        # By a controller that has just begun, too: what came in time is not to go for that.
        return None
    min_count = len(operation.workers) if scaler.min_count is None else scaler.min_count
    return reachable_workers if reachable_workers and len(reachable_workers) >= min_count else ()


def _scale_out_by_scaler(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler
) -> None:
    """List all that come at once, so that training is interrupted but once."""
    if failed := [i for i in operation.workers if _has_failed(state, i)]:
        _retry(state, plan, operation, scaler, failed)
        return
    arrived = operation.workers if operation.ready else _arrived(state, plan, operation, scaler)
    if arrived is None:
        return
    if arrived and not operation.ready and (scaler.script or len(arrived) < len(operation.workers)):
        # Who is late is late: a script that runs is told of no others, whatever they do meanwhile.
        ready = attrs.evolve(operation, workers=arrived, ready=True)
        plan.membership = attrs.evolve(plan.membership, scaling=ready)
        return
    failure = (
        None
        if arrived
        else f"execution timeout: {hosts.unreachable_message(state, operation.workers)}"
    )
    if arrived and scaler.script:
        failure = scripts.run_script(state, plan, operation, scaler)
    if failure is None:
        plan.set_hosts(*plan.membership.hosts, *arrived)
        listed = attrs.evolve(operation, done=True)
        plan.membership = attrs.evolve(plan.membership, scaling=listed)
    elif failure:
        _finish(state, plan, operation, failure)


def _await_host_update(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation, scaler: Scaler | None
) -> None:
    """End a change whose workers are listed, once the launcher knows, or cannot be told for long.

    They stay in both cases: it may be that it knows.
    """
    written = state.launcher is None or hosts.is_written(state, plan.membership)
    wait_s = state.left_s(operation, _timeout_s(state, scaler) + state.policy.drain_timeout_s)
    if not written and wait_s > 0:
        plan.waits_s.append(wait_s)
        return
    plan.add(*operation.workers)
    _finish(
        state, plan, operation, "" if written else "the launcher could not be told of them in time"
    )


def _timeout_s(state: MembershipState, scaler: Scaler | None) -> float:
    own_s = scaler.timeout_s if scaler else None
    return state.policy.scale_out_timeout_s if own_s is None else own_s


def _scale_out_by_spec(
    state: MembershipState, plan: MembershipPlan, operation: ScaleOperation
) -> None:
    """Enrol what the spec asks for once it is there; what is late joins when it comes."""
    wait_s = state.left_s(operation, state.policy.scale_out_timeout_s)
    reachable_workers = _reachable(state, plan, operation, wait_s)
    changed = state.desired_replicas != state.membership.observed_replicas
    if len(reachable_workers) < len(operation.workers) and wait_s > 0 and not changed:
        plan.waits_s.append(wait_s)
        return
    plan.add(*operation.workers)
    plan.set_hosts(*plan.membership.hosts, *reachable_workers)
    _finish(state, plan, operation)


def _has_failed(state: MembershipState, worker: int) -> bool:
    one = state.workers.get(worker)
    if one is None or one.pod is None or one.pod.metadata.is_terminating:
        # One that is on its way out was counted before it was told to go.
        return False
    return one.state in (ReplicaState.FAILED_PERMANENT, ReplicaState.SUCCEEDED)


def _retry(
    state: MembershipState,
    plan: MembershipPlan,
    operation: ScaleOperation,
    scaler: Scaler,
    failed: Sequence[int],
) -> None:
    names = ", ".join(state.pod_names(failed))
    if operation.failures >= scaler.backoff_limit:
        _finish(state, plan, operation, f"{names} ended before the launcher could use them")
        return
    pods = [one.pod for i in failed if (one := state.workers.get(i)) and one.pod]
    plan.deleted_pods += [pod for pod in pods if not pod.metadata.is_terminating]
    once_more = attrs.evolve(operation, failures=operation.failures + 1)
    plan.membership = attrs.evolve(plan.membership, scaling=once_more)
