"""The central decision about an elastic job's workers: its members and their needs. Pure.

It precedes the plan for the job's children, which creates and deletes pods for the members.
"""

import attrs

from dlctl.api.job import WORKER, Job
from dlctl.api.objects.scalers import FailedStep, ScaleFailure, ScalerPhase
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.api.status.membership import Membership
from dlctl.reconcilers.membership import hosts, node_drain, scaler_status, scaling, worker_failures
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.scale_out import scale_out
from dlctl.reconcilers.membership.selection import follow_replicas, initial_membership
from dlctl.reconcilers.observed_replica import ReplicaState

_STOPPED_PHASES = (JobPhase.SUSPENDED, JobPhase.RESTARTING)


def current_membership(job: Job) -> Membership | None:
    """Return the last membership of an elastic job, or its first one; None if none is planned."""
    if job.elasticity is None or (job.is_partial and not job.status.phase.has_ended):
        # A partially decoded spec is not enough to choose workers.
        return None
    return job.status.membership or initial_membership(job.replica_count(WORKER))


def with_current_members(job: Job) -> Job:
    """Return a job with the workers of its current membership, if it has one."""
    membership = current_membership(job)
    return job if membership is None else with_members(job, membership)


def with_members(job: Job, membership: Membership) -> Job:
    """Return a job whose worker spec lists its members, and workers being added or removed."""
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
    """Return the plan for the members of an elastic job."""
    plan = MembershipPlan.unchanged(state)
    phase = state.job.status.phase
    if phase.has_ended:
        return _finish(state, plan)
    plan = _accept_scalers(state, plan)
    if phase in _STOPPED_PHASES or state.job.run_policy.suspended:
        return _stop(state, plan)
    for step in (
        scaling.adopt,
        worker_failures.record_failures,
        worker_failures.replace_failed,
        _follow_replicas,
        node_drain.evacuate,
        _scale,
        _update_launcher,
        _add_progress_conditions,
    ):
        # Each step starts from the members that the previous one returned.
        plan = step(attrs.evolve(state, membership=plan.membership), plan)
    return plan


def with_planned_members(job: Job, plan: MembershipPlan | None) -> Job:
    """Return the job with its planned membership, restarts and conditions."""
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


def _finish(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """End all operations of a finished job; its pending scalers fail."""
    plan = plan.with_membership(plan.membership.with_scaling(None).with_evacuating(None))
    for scaler in state.scalers:
        over = ScaleFailure(f"{state.job.resource.kind} {state.job.key} has ended")
        plan = scaler_status.scaling_finished(plan, scaler, over)
    return plan


def _stop(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """End all operations of a job whose pods are deleted, until it is resumed or restarted."""
    plan = node_drain.complete(scaling.complete(state, plan))
    # The generation stays: nothing is written before there is another launcher.
    return attrs.evolve(plan, membership=plan.membership.reset())


def _accept_scalers(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Acknowledge new scalers, and fail invalid ones."""
    for scaler in state.scalers:
        if scaler.invalid_reason:
            failure = ScaleFailure(scaler.invalid_reason, FailedStep.SELECT_WORKERS)
            plan = scaler_status.rejected(plan, scaler, failure)
        elif not scaler.status.conditions:
            plan = scaler_status.scaler_created(plan, scaler)
    return plan


def _follow_replicas(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Follow the replicas in the spec at once while no launcher knows any worker."""
    if state.is_launched or plan.membership.hosts:
        return plan
    return plan.with_membership(
        follow_replicas(plan.membership, state.desired_replicas, state.max_index)
    )


def _scale(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    operation = state.membership.scaling
    if operation is None:
        if state.launcher is not None and state.job.status.phase is JobPhase.RUNNING:
            return scaling.start(state, plan)
        return plan
    if _has_result(state, operation.uid):
        return scaling.finish(state, plan, operation)
    scaler = state.scaler(operation.uid)
    if scaler is not None and scaler.status.phase is ScalerPhase.NEW:
        # The controller ended after it had written the job, and before it wrote the scaler.
        plan = scaler_status.scaling_started(plan, scaler, state.pod_names(operation.workers))
    if operation.is_scale_out:
        return scale_out(state, plan, operation)
    return scaling.scale_in(state, plan, operation)


def _update_launcher(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    if state.is_launched:
        return hosts.update_hosts(state, plan)
    return hosts.plan_launcher(state, plan)


def _add_progress_conditions(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Add conditions for the progress of the job, each of them once."""
    job, now, current = state.job, state.now, state.job.status.conditions
    created = [one for one in state.workers.values() if one.state is not ReplicaState.MISSING]
    reported = state.dialect.conditions
    reached = []
    if len(created) >= len(state.alive) > 0:
        reached.append(reported.workers_created(job, now))
    if plan.create_launcher:
        count = len(plan.membership.hosts)
        reached.append(reported.workers_ready(job, count, now))
    launcher = state.launcher_replica
    if launcher is not None and launcher.state is not ReplicaState.MISSING:
        # Even if it has ended already.
        reached.append(reported.launcher_created(job, now))
    for condition in reached:
        if not conditions.is_true(current, condition.type):
            plan = plan.with_condition(condition)
    return plan


def _has_result(state: MembershipState, uid: str) -> bool:
    """Return whether a scaler is already finished, which the job does not reflect yet."""
    return any(one.uid == uid for one in state.finished_scalers)
