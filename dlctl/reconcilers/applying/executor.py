"""Applies a plan: statuses, events, deletions, creations, updates, in this order.

Each step may be interrupted and repeated: the next plan starts from the server's current state.
"""

from collections.abc import Mapping

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import BATCH_JOBS, PODS, SERVICES, Object, Resource
from dlctl.api.status.job_status import JobPhase
from dlctl.clock import Clock
from dlctl.controller.controller import Result
from dlctl.durations import shortest_wait
from dlctl.errors import InvalidJobError
from dlctl.kube.errors import names_missing_object
from dlctl.reconcilers.applying.child_writer import ChildWriter
from dlctl.reconcilers.applying.reconcile_context import ReconcileContext
from dlctl.reconcilers.children.creation import CreateResult
from dlctl.reconcilers.content_errors import ContentError
from dlctl.reconcilers.events.job_events import JobEvents
from dlctl.reconcilers.handlers.batch_periods import BATCH_PERIOD_S
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.content_error_log import ContentErrorLog
from dlctl.reconcilers.job.metrics import JobMetrics
from dlctl.reconcilers.job.status_write import StatusWrite
from dlctl.reconcilers.job.writer import JobWriter
from dlctl.reconcilers.membership.manager import MembershipManager
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.recreation_backoff import RecreationBackoff
from dlctl.reconcilers.status.invalid_status import invalid_plan


@attrs.frozen
class Executor:
    """Applies the plans of one kind of job; holds no state between them but in a job's cache."""

    job_writer: JobWriter
    child_writer: ChildWriter
    membership: MembershipManager
    events: JobEvents
    metrics: JobMetrics
    content_errors: ContentErrorLog
    recreations: RecreationBackoff
    clock: Clock

    async def apply(self, context: ReconcileContext, plan: Plan) -> Result:
        """Apply a plan, and return when to reconcile again.

        :raises ConflictError: if an object has changed since the stores showed it.
        """
        job, obj = context.job, context.obj
        self._report_unconfirmed(context)
        context = await self._write_statuses(context, plan)
        self.events.record_all(job, context.obj, (*plan.action_notes, *plan.notes))
        if context.pod_problems is not None:
            context.cache.event_dedup.seen_problems = context.pod_problems
        # Some may be deleted even if the deletion of another one fails.
        self._forget_creations(job, plan)
        deleted: list[tuple[Resource, Object]] = []
        try:
            await self.child_writer.delete(job, plan, deleted)
        finally:
            self.events.deleted(job, obj, deleted)
        await self.child_writer.force_delete(
            job, plan, lambda pod: self.events.force_deleted(job, obj, pod)
        )
        if plan.ttl_expired:
            await self.job_writer.delete(job, obj)
            self.events.ttl_expired(job, obj)
            return Result()
        if plan.requeue:
            return Result(requeue=True)
        try:
            wait_s, rejections_changed = await self._write_children(context, plan)
        except InvalidJobError as error:
            # The template is the user's, so errors in it are the user's to fix.
            failed = ReconcileContext.of_status(context.obj, plan.status, context.cache)
            return await self.apply(failed, invalid_plan(failed.job, str(error), self.clock.now()))
        self.membership.set_wanted(job.key, plan.membership_plan)
        if job.spec_patch and (plan.pods or plan.status.phase is JobPhase.CREATING):
            await self.job_writer.patch_spec(context.obj, job.spec_patch)
        if rejections_changed or not context.is_current():
            # The next plan reports it in the status.
            return Result(requeue_after_s=0)
        left_s = self._backoff_left_s(context)
        if plan.has_more and not wait_s and not left_s:
            return Result(requeue_after_s=0)
        batch_period_s = None if _can_wait_for_event(job, plan) else BATCH_PERIOD_S
        return Result(
            requeue_after_s=shortest_wait(
                wait_s or None, left_s, plan.requeue_after_s, batch_period_s
            )
        )

    async def _write_statuses(self, context: ReconcileContext, plan: Plan) -> ReconcileContext:
        """Write the statuses; return the context with the updated job."""
        job, obj, cache = context.job, context.obj, context.cache
        await self.membership.patch_scalers(job, plan.membership_plan, before_job=True)
        for_mpi_operator = obj.dialect.framework.creates_launcher_jobs
        write = StatusWrite(job, plan.status, plan.notes, for_mpi_operator)
        updated = None
        if plan.status != job.status:
            updated = await self.job_writer.patch_status(obj, write, cache)
        if updated is None:
            # How long this status has waited does not count for a later one.
            cache.superseded_at = None
        else:
            cache.status_written_s = self.clock.monotonic()
            cache.has_created = False
            self.metrics.status_written(write, obj.metadata, self.clock.now())
            context = attrs.evolve(context, obj=updated)
        await self.membership.patch_scalers(job, plan.membership_plan, before_job=False)
        return context

    def _forget_creations(self, job: Job, plan: Plan) -> None:
        """Forget the creation of children to delete, so that the next ones are due.

        Those of outdated pods are kept: what made a new pod outdated may do so with the next one.
        """
        if plan.status.job_restarts > job.status.job_restarts:
            # All its pods are outdated now, and the restart has a back-off of its own.
            self.recreations.forget_all(job.uid, PODS)
        deleted = [(r, one) for r in (PODS, SERVICES, BATCH_JOBS) for one in plan.deletions(r)]
        for resource, one in (*deleted, *plan.dependents.deleted):
            if resource != PODS or one.metadata.name not in plan.outdated_pods:
                self.recreations.forget(job.uid, resource, [one.metadata.name])

    def _report_unconfirmed(self, context: ReconcileContext) -> None:
        """Report a status that is written after all, though the response to it was lost."""
        obj, write = context.obj, context.cache.unconfirmed_write
        if write is None or write.status != context.job.status:
            return
        context.cache.unconfirmed_write = None
        self.metrics.status_written(write, obj.metadata, self.clock.now())
        self.events.record_all(write.job, obj, write.notes)

    async def _write_children(self, context: ReconcileContext, plan: Plan) -> tuple[float, bool]:
        """Create and update children, secrets first.

        Return the seconds to wait before the next attempt, and whether the rejections have changed.
        """
        backoff_s = self._backoff_left_s(context) if plan.has_writes else None
        if wait_s := backoff_s or await self._create_secrets(context, plan):
            return wait_s, False
        written, wait_s = await self._create_and_update(context, plan)
        _remember_preexisting(context.cache, written)
        if plan.has_more and plan.has_creations:
            # The next children do not wait for an update that others undo.
            wait_s = 0.0
        return wait_s, self._record_rejections(context, written) or bool(written.preexisting)

    async def _create_secrets(self, context: ReconcileContext, plan: Plan) -> float:
        """Create the secrets that new pods mount, if due; return the seconds to wait for them."""
        job, secrets, now_s = context.job, context.cache.secrets, self.clock.monotonic()
        if not plan.needs_secrets or not secrets.is_due(now_s):
            return 0.0
        wait_s = await self.child_writer.create_secrets(job, context.renderer, secrets, now_s)
        self.events.found_secrets(job, context.obj, secrets.of_unknown_owner)
        return wait_s

    async def _create_and_update(
        self, context: ReconcileContext, plan: Plan
    ) -> tuple[CreateResult, float]:
        """Create and update the plan's children; none if the secrets that pods mount are rejected.

        The result includes rejected secrets and updates. Return also how many seconds others wait.
        """
        cache = context.cache
        if plan.needs_secrets and cache.secrets.rejections:
            return CreateResult(rejections=cache.secrets.rejections), 0.0
        if plan.has_creations and cache.has_created:
            # Those may have vanished with the job, and no status write would show that.
            await self.job_writer.refetch(context.obj)
        created: dict[Resource, list[str]] = {}
        try:
            result = await self.child_writer.create(context, plan, created)
        finally:
            # Also those that were created before another one failed, or the reconcile timed out.
            self._record_creations(context, created)
        rejected, wait_s = await self.child_writer.update(context, plan, self.recreations)
        return attrs.evolve(result, rejections={**rejected, **result.rejections}), wait_s or 0.0

    def _record_creations(
        self, context: ReconcileContext, created: Mapping[Resource, list[str]]
    ) -> None:
        if not created:
            return
        job, types = context.job, context.renderer.gang.other_scheduler_types
        context.cache.has_created = True
        for resource, names in created.items():
            self.recreations.record(job.uid, resource, names)
        self.events.created(job, context.obj, created, types)

    def _record_rejections(self, context: ReconcileContext, created: CreateResult) -> bool:
        """Store the server's rejections; return whether they concern other children than before.

        :raises InvalidJobError: if no retry can help, and no pod of the job has ever run.
        """
        job, cache = context.job, context.cache
        changed = cache.rejected.update(
            created,
            job.generation,
            self.clock.monotonic(),
            has_run=context.has_run,
            is_name_taken=context.is_name_taken,
        )
        messages = cache.event_dedup.rejections(job, created.rejections)
        self.events.record_all(job, context.obj, messages)
        for rejection in created.rejections.values():
            if isinstance(rejection.exception, ContentError):
                self.content_errors.report(cache, rejection.exception)
        if (invalid := cache.rejected.permanent_failure(job.generation)) is not None:
            raise invalid
        return changed

    def _backoff_left_s(self, context: ReconcileContext) -> float | None:
        """Return the seconds until rejected children may be retried."""
        rejected, now_s = context.cache.rejected, self.clock.monotonic()
        return rejected.left_s(context.job.generation, now_s, context.is_name_taken)


def _remember_preexisting(cache: JobCache, written: CreateResult) -> None:
    """Keep in mind which objects of others are used, but none that turns out to be missing."""
    messages = [rejection.server_message for rejection in written.rejections.values()]
    cache.preexisting = frozenset(
        (resource, name)
        for resource, name in cache.preexisting | written.preexisting
        # As a pod is rejected whose account has been deleted since.
        if not any(names_missing_object(message, name) for message in messages)
    )


def _can_wait_for_event(job: Job, plan: Plan) -> bool:
    """Return whether the next step can wait for this write's watch event."""
    if plan.status == job.status:
        return True
    started = plan.status.phase.is_active and job.elasticity is None
    old = job.status.phase
    return started and (old.is_active or old is JobPhase.NEW or bool(plan.pods))
