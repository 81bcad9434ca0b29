"""The launcher's host file: the workers that the launcher can reach. Pure.

Launchers give up on hosts that are listed before their names resolve and their sshd responds, and
training may fail as a result.
"""

import datetime
from collections.abc import Collection
from typing import Final

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.policies.elasticity import AttachMode
from dlctl.api.status.membership import Membership
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.reconcilers.membership.exec_output import ProbeResult
from dlctl.reconcilers.membership.exec_tasks import ProbeWorkers, WriteFiles
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.observed_replica import ReplicaState

_MAX_REASONS: Final = 3
# Attempts to write the hosts, before a time limit that has passed applies.
_MAX_TRIES: Final = 5
# Seconds that a late worker waits for others after it has become ready.
BATCH_WINDOW_S: Final = 5.0


def reachable(
    state: MembershipState, plan: MembershipPlan, workers: Collection[int]
) -> tuple[frozenset[int], MembershipPlan]:
    """Return the workers that the launcher can reach, and the plan with the probe.

    Workers on draining nodes are excluded.
    """
    ready = _ready(state, workers)
    if state.launcher is not None and state.elasticity.attach is AttachMode.KUBEXEC:
        # Commands go through the API server, which reaches every running pod.
        return ready, plan
    task = _probe_task(state, ready)
    if task is None:
        return frozenset(), plan
    outcome = state.outcomes.get(task)
    if outcome is None:
        return frozenset(), plan.with_exec_task(task)
    answers = _probe_result(outcome).reachable
    found = frozenset(i for i in ready if state.pod_name(i) in answers)
    return found, plan.with_exec_task(task, retry=found != ready)


def _probe_result(outcome: TaskOutcome) -> ProbeResult:
    """Return the result of a probe; if it has failed, that no worker is known to be reachable."""
    return outcome.result if isinstance(outcome.result, ProbeResult) else ProbeResult(frozenset())


def is_probing(state: MembershipState, workers: Collection[int]) -> bool:
    """Return whether a probe of these workers is still running."""
    task = _probe_task(state, _ready(state, workers))
    return task is not None and task not in state.outcomes


def unreachable_message(state: MembershipState, workers: Collection[int]) -> str:
    """Return why workers cannot be reached, according to the last probe."""
    task = _probe_task(state, _ready(state, workers))
    outcome = state.outcomes.get(task) if task else None
    reasons = _probe_result(outcome).reasons if outcome else {}
    waiting = [state.pod_name(i) for i in sorted(workers) if not state.is_ready(i)]
    reasons_shown = [f"{name} is not ready" for name in waiting]
    reasons_shown += [
        f"{name} does not answer: {reason}" for name, reason in sorted(reasons.items())
    ]
    if outcome and outcome.error:
        reasons_shown.append(outcome.error)
    if state.launcher is None:
        reasons_shown.append("the launcher is not running")
    return "; ".join(reasons_shown[:_MAX_REASONS])


def update_hosts(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Plan the host file of a launched job, and the task that writes it."""
    present = set(state.membership.present) - state.membership.retired
    kept = present.intersection(state.membership.hosts) - _leaving(state)
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
    note = EventNote("Warning", state.job.messages.reason("HostsNotDelivered"), outcome.error)
    return plan.with_exec_task(task, retry=True).with_notes(note)


def _late_batch(
    state: MembershipState, plan: MembershipPlan, waiting: Collection[int]
) -> tuple[frozenset[int], MembershipPlan]:
    """Return the late workers to list now.

    Each update interrupts the training, so they wait a moment for others that are starting.
    """
    found, plan = reachable(state, plan, waiting)
    coming = [i for i in waiting if i not in found and not state.on_draining_node(i)]
    since = min((at for i in found if (at := state.ready_since(i))), default=None)
    if not coming or since is None:
        return found, plan
    left_s = BATCH_WINDOW_S - (state.now - since).total_seconds()
    if 0 < left_s <= 2 * BATCH_WINDOW_S:
        return frozenset(), plan.with_requeue_after(left_s)
    # It is over, or the clock of a node is ahead.
    return found, plan


def write_task(state: MembershipState, membership: Membership) -> WriteFiles | None:
    """Return the task that writes the hosts to the launcher; None if it is not running."""
    if state.launcher is None:
        return None
    files = state.host_files(sorted(membership.hosts))
    return WriteFiles(state.launcher, tuple(sorted(files.items())), membership.generation)


def is_written(state: MembershipState, membership: Membership) -> bool:
    """Return whether the launcher's files contain exactly these hosts."""
    outcome = write_outcome(state, membership)
    return outcome is not None and not outcome.error


def is_writing(state: MembershipState, membership: Membership) -> bool:
    """Return whether these hosts may soon be written to the launcher, as after an outage."""
    outcome = write_outcome(state, membership)
    if outcome is None:
        return state.launcher is not None
    return bool(outcome.error) and outcome.attempts < _MAX_TRIES


def write_outcome(state: MembershipState, membership: Membership) -> TaskOutcome | None:
    """Return the outcome of writing these hosts: its result is the time at which it was done."""
    task = write_task(state, membership)
    return None if task is None else state.outcomes.get(task)


def plan_launcher(state: MembershipState, plan: MembershipPlan) -> MembershipPlan:
    """Plan the creation of a missing launcher, with its first hosts, once workers are ready.

    It needs all workers, or enough of them after ``start_after_s``.
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
        start = _waits_since(state) + datetime.timedelta(seconds=state.settings.start_after_s)
        left_s = (start - state.now).total_seconds()
        if left_s > 0:
            return plan.with_requeue_after(left_s)
    plan = plan.with_membership(plan.membership.with_hosts(ready))
    return attrs.evolve(plan, create_launcher=True)


def _waits_since(state: MembershipState) -> datetime.datetime:
    """Return since when the job waits for workers: its start, or its last restart."""
    status = state.job.status
    created = state.dialect.conditions.workers_created_at(status.conditions)
    return max((at for at in (created, status.start_time) if at), default=state.now)


def _probe_task(state: MembershipState, ready: frozenset[int]) -> ProbeWorkers | None:
    """Return the task that probes the ready workers; None if no probe is needed."""
    if not ready or state.launcher is None or state.elasticity.attach is AttachMode.KUBEXEC:
        return None
    return ProbeWorkers(state.launcher, frozenset(state.pod_names(sorted(ready))))


def _ready(state: MembershipState, workers: Collection[int]) -> frozenset[int]:
    return frozenset(i for i in workers if state.is_ready(i) and not state.on_draining_node(i))


def _still_needed(
    state: MembershipState, plan: MembershipPlan, listed: Collection[int]
) -> tuple[frozenset[int], MembershipPlan]:
    """Return the evacuating workers that stay listed because too few others are."""
    evacuating = state.membership.evacuating
    if evacuating is None or len(listed) >= state.elasticity.min_replicas:
        return frozenset(), plan
    # The second half of the drain time is for the launcher to disconnect from them.
    wait_s = state.left_s(evacuating, state.settings.drain_timeout_s / 2)
    if wait_s <= 0:
        return frozenset(), plan
    existing = state.hosts.intersection(state.membership.present) - state.membership.retired
    return existing.intersection(evacuating.workers), plan.with_requeue_after(wait_s)


def _leaving(state: MembershipState) -> frozenset[int]:
    """Return the workers that are leaving, without those for which a script has to run first."""
    operation, leaving = state.membership.scaling, state.membership.leaving
    if operation is None:
        return leaving
    # Otherwise it is not known yet whether the launcher uses the workers.
    is_checked = operation.is_scale_out or operation.is_ready
    scaler = state.scaler(operation.uid)
    awaits_script = bool(not operation.is_done and scaler and scaler.script)
    return leaving if is_checked and not awaits_script else leaving - frozenset(operation.workers)
