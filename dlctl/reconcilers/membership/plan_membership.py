"""The one decision about a job's workers: who is to be on the roster now, and who to be told. Pure.

It comes before the plan for the job's children, which makes and deletes what the roster says.
"""

import attrs

from dlctl.api import conditions
from dlctl.api.elastic import WORKER, Membership, ScalerPhase
from dlctl.api.job import Job
from dlctl.api.status import JobPhase, JobStatus
from dlctl.dialects.et_operator import training_conditions
from dlctl.reconcilers.membership import hosts, node_drain, scaler_status, scaling, worker_failures
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.selection import follow_replicas
from dlctl.reconcilers.observe import ReplicaState

_FINISHED_PHASES = (JobPhase.CLEAN_UP, JobPhase.DONE)
_STOPPED_PHASES = (JobPhase.SUSPENDED, JobPhase.RESTARTING)


def with_members(job: Job, membership: Membership) -> Job:
    """Return a job with the workers that its roster has, and those that come or go."""
    members = membership.present
    specs = tuple(
        attrs.evolve(spec, explicit_indexes=members, replicas=len(members))
        if spec.type == WORKER
        else spec
        for spec in job.replica_specs
    )
    return attrs.evolve(
        job, replica_specs=specs, status=attrs.evolve(job.status, membership=membership)
    )


def plan_membership(state: MembershipState) -> MembershipPlan:
    """Return what the job's workers need now."""
    plan = MembershipPlan(state.membership, state.now, restarts=dict(state.job.status.restarts))
    phase = state.job.status.phase
    if phase in _FINISHED_PHASES:
        plan.membership = attrs.evolve(plan.membership, scaling=None, evacuating=None)
        for scaler in state.scalers:
            over = f"{state.job.resource.kind} {state.job.key} has ended"
            scaler_status.scaling_finished(plan, scaler, state.now, over)
        return plan
    _accept_scalers(state, plan)
    if phase in _STOPPED_PHASES or state.job.run_policy.suspended:
        scaling.complete(state, plan)
        node_drain.complete(plan)
        plan.membership = plan.membership.reset()
        return plan
    scaling.adopt(state, plan)
    state = attrs.evolve(state, membership=plan.membership)
    worker_failures.record_failures(state, plan)
    worker_failures.replace_failed(attrs.evolve(state, membership=plan.membership), plan)
    if not state.is_launched and not plan.membership.hosts:
        plan.membership = follow_replicas(plan.membership, state.desired_replicas, state.max_index)
    node_drain.evacuate(attrs.evolve(state, membership=plan.membership), plan)
    _scale(attrs.evolve(state, membership=plan.membership), plan)
    _launch(attrs.evolve(state, membership=plan.membership), plan)
    return plan


def with_membership_plan(job: Job, plan: MembershipPlan | None) -> Job:
    """Return the job as its membership is planned: members, restarts, conditions."""
    if plan is None:
        return job
    status: JobStatus = job.status
    current = status.conditions
    for condition in plan.conditions:
        current = conditions.with_condition(
            conditions.without_condition(current, condition.type), condition
        )
    status = attrs.evolve(status, conditions=current, restarts=plan.restarts)
    return with_members(attrs.evolve(job, status=status), plan.membership)


def _accept_scalers(state: MembershipState, plan: MembershipPlan) -> None:
    """Take scalers on, and turn down those that nobody can do."""
    for scaler in state.scalers:
        if scaler.invalid_reason:
            scaler_status.scaling_finished(plan, scaler, state.now, scaler.invalid_reason)
        elif not scaler.status.conditions:
            scaler_status.scaler_created(plan, scaler, state.now)


def _scale(state: MembershipState, plan: MembershipPlan) -> None:
    operation = state.membership.scaling
    if operation is None:
        if state.launcher is not None and state.job.status.phase is JobPhase.RUNNING:
            scaling.start(state, plan)
        return
    if _has_result(state, operation.uid):
        scaling.finish(state, plan, operation)
        return
    scaler = state.scaler(operation.uid)
    if scaler is not None and scaler.status.phase is ScalerPhase.NEW:
        # The controller ended after the job was told, and before its scaler was.
        scaler_status.scaling_started(plan, scaler, state.pod_names(operation.workers), state.now)
    if operation.is_scale_out:
        scaling.scale_out(state, plan, operation)
    else:
        scaling.scale_in(state, plan, operation)


def _launch(state: MembershipState, plan: MembershipPlan) -> None:
    """Keep the hosts current, begin with some, and state how far the job has come."""
    if state.is_launched:
        hosts.update_hosts(state, plan)
    else:
        plan.create_launcher = hosts.should_create_launcher(state, plan)
    current = state.job.status.conditions
    created = [one for one in state.workers.values() if one.state is not ReplicaState.MISSING]
    if (
        not conditions.is_true(current, training_conditions.WORKERS_CREATED)
        and len(created) >= len(state.alive) > 0
    ):
        plan.conditions.append(training_conditions.workers_created(state.job, state.now))
    if plan.create_launcher and not conditions.is_true(current, training_conditions.WORKERS_READY):
        ready = training_conditions.workers_ready(state.job, len(plan.membership.hosts), state.now)
        plan.conditions.append(ready)
    if state.is_launched and not conditions.is_true(current, training_conditions.LAUNCHER_CREATED):
        plan.conditions.append(training_conditions.launcher_created(state.job, state.now))


def _has_result(state: MembershipState, uid: str) -> bool:
    """Tell whether a scaler has its result already, and only the job has yet to know of it."""
    return any(one.uid == uid for one in state.finished_scalers)
