"""The plan for a job's members: an immutable value; each rule returns an updated copy."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Self

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Replica
from dlctl.api.meta import UID
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.scalers import Scaler, ScalerStatus
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import RestartRecord
from dlctl.api.status.membership import Membership
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.durations import shortest_wait
from dlctl.reconcilers.membership.exec_tasks import ExecTask
from dlctl.reconcilers.membership.membership_state import MembershipState


@attrs.frozen
class ScalerUpdate:
    """The next status of a scaler, and the event to record with it."""

    scaler: Scaler
    status: ScalerStatus
    note: EventNote | None = None
    # Rejected without an operation that the job's status names.
    is_rejected: bool = False

    @property
    def precedes_job(self) -> bool:
        """Return whether it is written before the job, which forgets the operation.

        A rejection follows the job: once it is written, no other plan adds it to the job.
        """
        return self.status.phase.finished and not self.is_rejected


@attrs.frozen
class MembershipPlan:
    """The next membership of a job, and the writes, deletions and exec tasks for it."""

    membership: Membership
    # The persisted membership and the current time, from which the next generation is derived.
    persisted: Membership
    now: datetime.datetime
    dialect: ElasticDialect
    restarts: Mapping[str, RestartRecord] = attrs.field(factory=dict)
    # Conditions of the job, in the order in which they are set.
    conditions: tuple[Condition, ...] = ()
    notes: tuple[EventNote, ...] = ()
    scaler_updates: Mapping[UID, ScalerUpdate] = attrs.field(factory=dict)
    deleted_pods: tuple[Pod, ...] = ()
    exec_tasks: frozenset[ExecTask] = frozenset()
    # Finished ones of ``exec_tasks`` to run again.
    retries: frozenset[ExecTask] = frozenset()
    # True if the launcher may be created.
    create_launcher: bool = False
    # Seconds until the next plan is needed without any change in the cluster.
    requeue_after_s: float | None = None

    @classmethod
    def unchanged(cls, state: MembershipState) -> Self:
        """Return the plan that changes nothing."""
        restarts = state.job.status.restarts
        return cls(state.membership, state.membership, state.now, state.dialect, restarts=restarts)

    def with_membership(self, membership: Membership) -> Self:
        """Return the plan with this membership; a change of hosts increases its generation."""
        generation = self.persisted.generation
        if membership.hosts != self.persisted.hosts:
            # From the time: after the loss of a status, generations must not fall behind the files.
            generation = max(generation + 1, int(self.now.timestamp()))
        return attrs.evolve(self, membership=attrs.evolve(membership, generation=generation))

    def with_restarts(self, records: Mapping[Replica, RestartRecord | None]) -> Self:
        """Return the plan with the restarts of some replicas; None removes them."""
        changed = {str(replica): record for replica, record in records.items()}
        restarts = {name: old for name, old in self.restarts.items() if name not in changed}
        restarts |= {name: record for name, record in changed.items() if record is not None}
        return attrs.evolve(self, restarts=restarts)

    def with_condition(self, condition: Condition) -> Self:
        return attrs.evolve(self, conditions=(*self.conditions, condition))

    def with_notes(self, *notes: EventNote) -> Self:
        return attrs.evolve(self, notes=(*self.notes, *notes))

    def with_scaler_update(self, update: ScalerUpdate) -> Self:
        updates = {**self.scaler_updates, update.scaler.uid: update}
        return attrs.evolve(self, scaler_updates=updates)

    def with_deleted_pods(self, pods: Iterable[Pod]) -> Self:
        """Return the plan with these pods deleted, unless they are terminating already."""
        deleted = tuple(pod for pod in pods if not pod.metadata.is_terminating)
        return attrs.evolve(self, deleted_pods=(*self.deleted_pods, *deleted))

    def with_exec_task(self, task: ExecTask, *, retry: bool = False) -> Self:
        retries = self.retries | {task} if retry else self.retries
        return attrs.evolve(self, exec_tasks=self.exec_tasks | {task}, retries=retries)

    def with_requeue_after(self, *waits_s: float) -> Self:
        """Return the plan that is followed by another after the shortest of these waits."""
        return attrs.evolve(self, requeue_after_s=shortest_wait(self.requeue_after_s, *waits_s))
