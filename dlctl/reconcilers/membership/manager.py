"""The I/O of elastic jobs: collects the input of membership plans, and applies them.

It never waits for launchers: commands run as background tasks, whose completion enqueues the job.
"""

import datetime
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import attrs

from dlctl.api.job import WORKER, Job
from dlctl.api.meta import Object, ObjectKey, Resource, owner_reference
from dlctl.api.objects.scalers import Scaler, ScalerObject
from dlctl.api.status.membership import Membership
from dlctl.backoff import Backoff
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.object_writer import ObjectWriter
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.informers.store import Store
from dlctl.kube.merge_diff import merge_diff
from dlctl.reconcilers.content_errors import Step, wrap_content_errors
from dlctl.reconcilers.large_jobs.threads import run_step
from dlctl.reconcilers.lifecycle.future_times import without_future_times
from dlctl.reconcilers.membership.exec_tasks import CheckInUse, ExecTask
from dlctl.reconcilers.membership.membership_plan import MembershipPlan, ScalerUpdate
from dlctl.reconcilers.membership.membership_state import MembershipSettings, MembershipState
from dlctl.reconcilers.membership.planner import (
    current_membership,
    plan_membership,
    with_members,
)
from dlctl.reconcilers.membership.scaler_index import BY_JOB, first_pending, read_scaler
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.reconcilers.observe import Observed

_RETRY_BACKOFF: Final = Backoff(base_s=0.5, cap_s=10.0)
# Between two checks whether the launcher has disconnected: there is no event for it.
_CHECK_INTERVAL_S: Final = 0.25
# Before unused workers are checked again: a launcher may be about to connect to the next one.
_CONFIRM_S: Final = 1.0


@attrs.define(eq=False)
class MembershipManager:
    """Plans the members of elastic jobs, and patches their scalers."""

    # None if the workers of jobs of this kind never change.
    dialect: ElasticDialect | None
    scaler_stores: Mapping[Resource, Store[ScalerObject]]
    tasks: BackgroundTasks[ObjectKey, ExecTask]
    writer: ObjectWriter
    recorder: EventRecorder
    settings: MembershipSettings = attrs.field(factory=MembershipSettings)
    nodes: NodeTracker = attrs.field(factory=NodeTracker)

    async def plan(
        self, job: Job, observed: Observed, now: datetime.datetime, cost: int
    ) -> MembershipPlan | None:
        """Plan an elastic job's members, of which the last ones are observed; None if it has none.

        If the ``cost`` is high, this runs in a thread.
        """
        with wrap_content_errors(Step.PLANNING):
            job = attrs.evolve(job, status=without_future_times(job.status, now))
            membership = current_membership(job)
            if self.dialect is None or job.elasticity is None or membership is None:
                return None
            framework = self.dialect.framework
            current = membership.scaling.uid if membership.scaling else ""
            state = MembershipState(
                job=with_members(job, membership),
                dialect=self.dialect,
                observed=observed,
                membership=membership,
                elasticity=job.elasticity,
                now=now.replace(microsecond=0),
                desired_replicas=job.replica_count(WORKER),
                slots=framework(job).slots,
                settings=self.settings,
                scalers=list(self._pending_scalers(self.dialect, job, current)),
                finished_scalers=list(self._finished_scaler(self.dialect, job, membership)),
                outcomes=self.tasks.outcomes(job.key),
                draining_nodes=self.nodes.current.draining.keys(),
                host_files=lambda hosts: framework(
                    with_members(job, attrs.evolve(membership, hosts=tuple(hosts)))
                ).host_files(),
            )
        return await run_step(
            Step.PLANNING, job.key.namespace, cost, partial(plan_membership, state)
        )

    async def patch_scalers(
        self, job: Job, membership_plan: MembershipPlan | None, *, before_job: bool
    ) -> None:
        """Write the statuses of scalers: those that precede the job's status, or the others.

        :raises ConflictError: if one has changed since the stores showed it.
        """
        for update in membership_plan.scaler_updates.values() if membership_plan else ():
            if self.dialect is not None and update.precedes_job is before_job:
                await self._patch_scaler(self.dialect, job, update)

    def set_wanted(self, key: ObjectKey, membership_plan: MembershipPlan | None) -> None:
        """Run exactly the plan's tasks in the launcher; None leaves running tasks alone."""
        if membership_plan is None:
            return
        outcomes = self.tasks.outcomes(key)
        self.tasks.set_wanted(key, membership_plan.exec_tasks)
        for task in membership_plan.retries:
            if task in outcomes:
                pause_s = _retry_delay_s(task, outcomes[task].attempts)
                self.tasks.retry(key, task, after_s=pause_s)

    def _pending_scalers(self, dialect: ElasticDialect, job: Job, current: str) -> Iterator[Scaler]:
        """Yield the first pending scalers of a job, the oldest first."""
        pending = (
            (resource, obj)
            for resource, store in self.scaler_stores.items()
            for obj in store.indexed(BY_JOB, str(job.key))
            if not obj.metadata.is_terminating and not _belongs_to_other_job(obj, job)
        )
        found = [
            read_scaler(dialect, resource, obj) for resource, obj in first_pending(pending, current)
        ]
        yield from sorted(found, key=lambda one: (one.created, one.full_name))

    def _finished_scaler(
        self, dialect: ElasticDialect, job: Job, membership: Membership
    ) -> Iterator[Scaler]:
        """Yield the scaler of the current operation, if it is already finished."""
        update = membership.scaling
        kind, _, name = update.scaler.partition(":") if update else ("", "", "")
        namespace, _, name = name.partition("/")
        for resource, store in self.scaler_stores.items():
            # The status of a job may name any namespace.
            is_own = resource.kind == kind and namespace == job.key.namespace
            obj = store.get(ObjectKey(namespace, name)) if is_own else None
            if update and obj and obj.metadata.uid == update.uid:
                found = read_scaler(dialect, resource, obj)
                if found.status.phase.finished:
                    yield found

    async def _patch_scaler(self, dialect: ElasticDialect, job: Job, update: ScalerUpdate) -> None:
        scaler, write_status = update.scaler, dialect.scalers.write_status
        obj: Object | None = self.scaler_stores[scaler.resource].get(scaler.key)
        if obj is None or obj.metadata.uid != scaler.uid:
            return
        if not obj.metadata.owner_references:
            owner = owner_reference(job.resource, name=job.key.name, uid=job.uid)
            owned = {"metadata": {"ownerReferences": [owner]}}
            obj = await self.writer.patch(job.uid, scaler.resource, obj, owned)
        old = write_status(scaler.status, scaler.resource)
        first = not scaler.status.conditions
        new = write_status(update.status, scaler.resource)
        if patch := merge_diff({} if first else old, new):
            await self.writer.patch(
                job.uid, scaler.resource, obj, {"status": patch}, subresource="status"
            )
        if update.note is not None:
            note = update.note
            self.recorder.record(
                scaler.resource, obj.metadata, note.type, note.reason, note.message
            )


def _belongs_to_other_job(obj: ScalerObject, job: Job) -> bool:
    """Return whether a scaler belongs to an earlier job of the same name, with which it goes."""
    owners = obj.metadata.owner_references or ()
    same = (o for o in owners if (o.group, o.kind) == (job.resource.group, job.resource.kind))
    return any(owner.uid != job.uid for owner in same)


def _retry_delay_s(task: ExecTask, attempts: int) -> float:
    if isinstance(task, CheckInUse):
        return _CONFIRM_S if task.confirms else _CHECK_INTERVAL_S
    return _RETRY_BACKOFF.delay_s(attempts)
