"""The launcher's host file: it lists the workers that the launcher can reach. Pure.

Launchers give up hosts that are listed before their names resolve and their sshd answers, and the
training may fail with them.
"""

import datetime
from collections.abc import Collection
from typing import Final

import attrs

from dlctl.api.elastic import AttachMode, Membership
from dlctl.dialects.et_operator import training_conditions
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.membership.exec_tasks import ProbeWorkers, WriteFiles
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.observe import ReplicaState

_MAX_REASONS: Final = 3
# Seconds that a late worker waits for others after it has become ready.
BATCH_WINDOW_S: Final = 5.0


def reachable(
    state: MembershipState, plan: MembershipPlan, workers: Collection[int]
) -> tuple[frozenset[int], MembershipPlan]:
    """Return those of the workers that the launcher can reach, and the plan with the probe.

    A worker whose node is about to go is not worth listing.
    """
    ready = _ready(state, workers)
    if state.launcher is not None and state.elasticity.attach is AttachMode.KUBEXEC:
        # The API server takes commands to each pod that runs.
        return ready, plan
    task = _probe_task(state, ready)
    if task is None:
        return frozenset(), plan
    outcome = state.outcomes.get(task)
    if outcome is None:
        return frozenset(), plan.with_exec_task(task)
    answers = outcome.result.reachable if outcome.result else ()
    found = frozenset(i for i in ready if state.pod_name(i) in answers)
    return found, plan.with_exec_task(task, retry=found != ready)


def is_probing(state: MembershipState, workers: Collection[int]) -> bool:
    """Return whether the outcome of a probe of these workers is still awaited."""
    task = _probe_task(state, _ready(state, workers))
    return task is not None and task not in state.outcomes


def unreachable_message(state: MembershipState, workers: Collection[int]) -> str:
    """Return why workers do not answer, as far as probes have shown."""
    task = _probe_task(state, _ready(state, workers))
    outcome = state.outcomes.get(task) if task else None
    reasons = outcome.result.reasons if outcome and outcome.result else {}
    waiting = [state.pod_name(i) for i in sorted(workers) if not state.is_ready(i)]
    reasons_shown = [f"{name} is not ready" for name in waiting]
    reasons_shown += [
        f"{name} does not answer: {reason}" for name, reason in sorted(reasons.items())
    ]
    if outcome and outcome.error:
        reasons_shown.append(outcome.error)
    if state.launcher is None:
        reasons_shown.append("the launcher does not run")
    return "; ".join(reasons_shown[:_MAX_REASONS])


def update_hosts(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Keep the host file of a launched job up to date, and have it written."""
    present = set(state.membership.present) - state.membership.retired
    kept = {i for i in state.membership.hosts if i in present and not _is_leaving(state, i)}
    waiting = [i for i in state.alive if i not in kept and i not in state.membership.leaving]
    late, plan = _late_batch(state, plan, waiting)
    needed, plan = _still_needed(state, plan, kept | late)
    plan = plan.with_membership(plan.membership.with_hosts(kept | late | needed))
    task = write_task(state, plan.membership)
    if task is None:
        return plan
    outcome = state.outcomes.get(task)
    if outcome is None or not outcome.error:
        return plan.with_exec_task(task)
    note = EventNote("Warning", "TrainingJobHostsNotDelivered", outcome.error)
    return plan.with_exec_task(task, retry=True).with_note(note)


def _late_batch(
    state: MembershipState, plan: MembershipPlan, waiting: Collection[int]
) -> tuple[frozenset[int], MembershipPlan]:
    """Return the late workers to list now.

    Each write interrupts the training, so they wait a moment for others that are coming.
    """
    found, plan = reachable(state, plan, waiting)
    coming = [i for i in waiting if i not in found and not state.on_draining_node(i)]
    since = min((at for i in found if (at := state.ready_since(i))), default=None)
    if not coming or since is None:
        return found, plan
    left_s = BATCH_WINDOW_S - (state.now - since).total_seconds()
    if left_s <= 0:
        return found, plan
    return frozenset(), plan.with_wait(left_s)


def write_task(state: MembershipState, membership: Membership) -> WriteFiles | None:
    """Return the task that writes the hosts to the launcher, None if it does not run."""
    if state.launcher is None:
        return None
    files = state.host_files(sorted(membership.hosts))
    return WriteFiles(state.launcher, tuple(sorted(files.items())), membership.generation)


def is_written(state: MembershipState, membership: Membership) -> bool:
    """Return whether the launcher's files have these hosts and no others."""
    task = write_task(state, membership)
    outcome = None if task is None else state.outcomes.get(task)
    return outcome is not None and not outcome.error


def plan_launcher(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Have a launcher that is missing created, with its first hosts, once workers are ready.

    That is when all of them are, or enough of them have been for long enough.
    """
    launcher_replica = state.launcher_replica
    if launcher_replica is None or launcher_replica.state is not ReplicaState.MISSING:
        return plan
    ready = [index for index in state.alive if state.is_ready(index)]
    # Members removed before the minimum was raised must not block the launcher.
    min_replicas = min(state.elasticity.min_replicas, len(state.membership.members))
    if not ready or len(ready) < min_replicas:
        return plan
    if len(ready) < len(state.alive):
        start = _waits_since(state) + datetime.timedelta(seconds=state.policy.start_after_s)
        left_s = (start - state.now).total_seconds()
        if left_s > 0:
            return plan.with_wait(left_s)
    plan = plan.with_membership(plan.membership.with_hosts(ready))
    return attrs.evolve(plan, create_launcher=True)


def _waits_since(state: MembershipState) -> datetime.datetime:
    """Return when the wait for workers began: with the job, or with its last restart."""
    status = state.job.status
    since = [
        c.last_transition_time
        for c in status.conditions
        if c.type == training_conditions.WORKERS_CREATED
    ]
    since += [status.start_time] if status.start_time else []
    return max(since, default=state.now)


def _probe_task(state: MembershipState, ready: frozenset[int]) -> ProbeWorkers | None:
    """Return the task that finds which of the ready workers answer, None if there is no need."""
    if not ready or state.launcher is None or state.elasticity.attach is AttachMode.KUBEXEC:
        return None
    return ProbeWorkers(state.launcher, frozenset(state.pod_names(sorted(ready))))


def _ready(state: MembershipState, workers: Collection[int]) -> frozenset[int]:
    return frozenset(i for i in workers if state.is_ready(i) and not state.on_draining_node(i))


def _still_needed(
    state: MembershipState, plan: MembershipPlan, listed: Collection[int]
) -> tuple[frozenset[int], MembershipPlan]:
    """Return the evacuating workers that stay listed: without them there would be too few."""
    evacuating = state.membership.evacuating
    if evacuating is None or len(listed) >= state.elasticity.min_replicas:
        return frozenset(), plan
    # The rest of the time is for the launcher to disconnect from them.
    wait_s = state.left_s(evacuating, state.policy.drain_timeout_s / 2)
    if wait_s <= 0:
        return frozenset(), plan
    there = state.hosts.intersection(state.membership.present) - state.membership.retired
    return there.intersection(evacuating.workers), plan.with_wait(wait_s)


def _is_leaving(state: MembershipState, worker: int) -> bool:
    """Return whether a worker leaves, and no script has to run first."""
    operation = state.membership.scaling
    scaler = state.scaler(operation.uid) if operation else None
    if (
        operation
        and not operation.is_scale_out
        and not operation.ready
        and worker in operation.workers
    ):
        # It is not known yet whether the launcher uses it.
        return False
    by_script = bool(operation and not operation.done and scaler and scaler.script)
    if by_script and operation and worker in operation.workers:
        return False
    return worker in state.membership.leaving
