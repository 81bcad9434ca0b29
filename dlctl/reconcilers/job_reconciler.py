"""The reconciler of one kind of job: get, read, observe, plan, apply.

Level-triggered: its only input is a key. The state that it keeps of a job between two calls saves
work or writes; losing it changes no decision.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

from dlctl.api.dependents import DependentObject
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import PODS, SERVICES, ObjectKey, Resource
from dlctl.api.pods import Pod, Service
from dlctl.api.status import JobPhase, JobStatus
from dlctl.clock import Clock
from dlctl.controller.worker_loop import Result
from dlctl.dialects import lenient_reader
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError
from dlctl.informers.store import Store
from dlctl.kube.errors import ConflictError, NamespaceTerminatingError, NotFoundError
from dlctl.reconcilers.children.adoption import Adopter
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.content_errors import ContentError, wrap_content_errors
from dlctl.reconcilers.crd_check import OutdatedCRDError
from dlctl.reconcilers.event_note import EventNote
from dlctl.reconcilers.executor import Executor
from dlctl.reconcilers.job_cache import JobCache
from dlctl.reconcilers.job_decoding import decode_job
from dlctl.reconcilers.job_writer import JobGoneError
from dlctl.reconcilers.large_jobs import to_thread_if_large
from dlctl.reconcilers.membership.plan_membership import with_membership_plan
from dlctl.reconcilers.observe import Children, Observed, observe
from dlctl.reconcilers.plan import Plan, with_membership
from dlctl.reconcilers.plan_job import Policy, plan_job
from dlctl.reconcilers.plan_slice import first_slice
from dlctl.reconcilers.reconcile_context import ReconcileContext
from dlctl.reconcilers.status import job_status, status_conflicts
from dlctl.reconcilers.status.status_conflicts import StatusConflictDetector, restore_own_status
from dlctl.reconcilers.status.status_debounce import debounce_counts

if TYPE_CHECKING:
    from dlctl.controller.expectations import ChildStore

# Fallback for a missing event: usually the event of dlctl's own write wakes the job earlier.
STALE_RETRY_S: Final = 5.0
CRD_OUTDATED: Final = "CRDOutdated"


@attrs.define
class JobReconciler:
    """Reconciles the jobs of one kind with their specs."""

    kind: Kind
    jobs: Store[JobObject]
    pods: Store[Pod]
    services: Store[Service]
    dependents: Mapping[Resource, Store[DependentObject]]
    executor: Executor
    adopter: Adopter
    clock: Clock
    policy: Policy = attrs.field(factory=Policy)
    _caches: dict[ObjectKey, JobCache] = attrs.field(init=False, factory=dict)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Take one job one step further; idempotent."""
        obj = self.jobs.get(key)
        cache = self._cache_for(key, obj)
        if obj is None or cache is None or obj.metadata.is_terminating:
            return Result()
        if not self._expectations_satisfied(obj):
            return Result(requeue_after_s=STALE_RETRY_S)
        decoded = self.kind.decode(obj)
        try:
            try:
                return await self._reconcile(obj, decoded, cache)
            except ContentError as error:
                return await self.executor.mark_malformed(decoded, error, cache)
        except OutdatedCRDError as error:
            cache.status_conflicts = StatusConflictDetector()
            self.executor.events.record(obj, EventNote("Warning", CRD_OUTDATED, str(error)))
            return Result(requeue_after_s=self.executor.jobs.crd.left_s())
        except (JobGoneError, NamespaceTerminatingError):
            # The job was deleted meanwhile, or is about to be; its event will follow.
            return Result()
        except (ConflictError, NotFoundError):
            # Another client changed the job or a child meanwhile, which is common.
            return Result(requeue=True)

    async def _reconcile(self, stored: JobObject, obj: DecodedObject, cache: JobCache) -> Result:
        with wrap_content_errors("reading"):
            # Checked before any change.
            if obj.dialect.managed_by_external_controller(obj):
                return Result()
            if (wait_s := self._pause_left_s(obj, cache)) > 0:
                return Result(requeue_after_s=wait_s)
        read = decode_job(self.kind, obj, cache.last_good_spec)
        if isinstance(read.error, ContentError):
            self.executor.content_errors.report(cache, read.error)
        self._record_phase(obj, cache, read.status.phase)
        if read.error is None:
            cache.last_good_spec = None if read.status.is_finished else stored.spec
        if (job := read.job) is None:
            return await self.executor.mark_invalid(read.obj, read.status, str(read.error), cache)
        if job.status.written_by_other_operator and cache.last_status:
            job = attrs.evolve(job, status=restore_own_status(job.status, cache.last_status))
        result = await self._reconcile_job(job, read.obj, cache)
        await self._check_crd(job, read.obj)
        self._drop_spec(stored, obj, read.status)
        return result

    async def _reconcile_job(self, job: Job, obj: DecodedObject, cache: JobCache) -> Result:
        if await self._adopt(obj.dialect, job, cache):
            # Planning requires that the stores show the adopted children.
            return Result(requeue_after_s=0)
        try:
            with wrap_content_errors("planning"):
                context, planned = await self._plan(job, obj, cache)
        except InvalidJobError as error:
            return await self.executor.mark_invalid(obj, job.status, str(error), cache)
        return await self.executor.apply(context, planned)

    async def _plan(
        self, job: Job, obj: DecodedObject, cache: JobCache
    ) -> tuple[ReconcileContext, Plan]:
        """Plan what a job needs now."""
        now, pods = self.clock.now(), self.pods.owned_by(job.uid)
        children = Children(
            pods,
            self.services.owned_by(job.uid),
            {r: store.owned_by(job.uid) for r, store in self.dependents.items()},
            cache.rejected.messages,
            cache.rejected.actionable,
        )
        size = max(job.total_replicas, len(pods))
        members = await self.executor.membership.plan(job, children, size)
        with_members = with_membership_plan(job, members)
        renderer = Renderer(with_members, obj.dialect)
        observed = await to_thread_if_large(size, observe, with_members, children, now)
        desired = Desired(retained_resources=obj.dialect.framework.retained_resources)
        try:
            with wrap_content_errors("rendering"):
                if not job.is_partial:
                    launch = members is None or members.create_launcher
                    desired = await to_thread_if_large(
                        size, renderer.desired, observed, create_launcher=launch
                    )
        except (ContentError, InvalidJobError) as error:
            with_members = self._as_partial(with_members, observed, cache, error)
        if with_members.is_partial:
            # If even this fails, roles stay as they are.
            with suppress(ContentError, InvalidJobError), wrap_content_errors("rendering"):
                desired = renderer.fallback_desired(observed)
        planned = await to_thread_if_large(
            size, plan_job, with_members, observed, desired, now, self.policy
        )
        since_write_s = self.clock.monotonic() - cache.status_written_s
        planned = debounce_counts(job, with_membership(planned, members), since_write_s)
        has_run = job_status.has_run(planned.status, observed)
        context = ReconcileContext(job, obj, cache, renderer, pods, has_run)
        return context, first_slice(planned)

    async def _adopt(self, dialect: Dialect, job: Job, cache: JobCache) -> bool:
        """Label children that lack dlctl's label; return whether there were any."""
        other_operator, selector = job.status.written_by_other_operator, dialect.orphan_selector
        cache.adopted &= other_operator
        if other_operator and selector and not cache.adopted:
            adopted = await self.adopter.adopt(job, selector)
            cache.adopted = True
            if adopted:
                return True
        return await self.executor.membership.readopt(job, self.pods.owned_by(job.uid))

    def _as_partial(
        self, job: Job, observed: Observed, cache: JobCache, error: ContentError | InvalidJobError
    ) -> Job:
        """Return a job without known children to create; its existing pods stay.

        :raises InvalidJobError: if none of them has ever run.
        """
        if isinstance(error, ContentError):
            self.executor.content_errors.report(cache, error)
        if not job_status.has_run(job.status, observed):
            raise InvalidJobError(str(error), field="spec") from error
        return attrs.evolve(job, invalid_reason=str(error), is_partial=True)

    async def _check_crd(self, job: Job, obj: DecodedObject) -> None:
        """Check whether the server preserves statuses, if it did not the last time."""
        jobs = self.executor.jobs
        if not jobs.crd.is_current():
            # This job's status was not written, so the check needs the stored one.
            jobs.crd.check(obj.dialect.write_status(job.status), await jobs.refetch(obj))

    def _drop_spec(self, stored: JobObject, obj: DecodedObject, status: JobStatus) -> None:
        """Drop the parts of a finished job's spec that are no longer needed."""
        # Kinds with scalers keep it: it is needed to process scalers of finished jobs.
        if status.is_finished and not self.kind.scalers:
            smaller = lenient_reader.prune_finished_spec(stored.spec, obj)
            if smaller is not stored.spec:
                self.jobs.shrink(stored, msgspec.structs.replace(stored, spec=smaller))

    def _pause_left_s(self, obj: DecodedObject, cache: JobCache) -> float:
        """Return the seconds until the job may be reconciled, if its status was not preserved."""
        now_s = self.clock.monotonic()
        if cache.status_conflicts.detect(obj.status, now_s):
            self.executor.metrics.status_conflict()
            note = EventNote("Warning", status_conflicts.REASON, status_conflicts.MESSAGE)
            self.executor.events.record(obj, note)
        return cache.status_conflicts.left_s(now_s) or self.executor.jobs.crd.left_s()

    def _record_phase(self, obj: DecodedObject, cache: JobCache, phase: JobPhase) -> None:
        self.executor.metrics.phase_changed(obj.key.namespace, cache.phase, phase)
        cache.phase = phase

    def _expectations_satisfied(self, obj: JobObject) -> bool:
        stores: dict[Resource, ChildStore] = {
            self.kind.resource: self.jobs,
            PODS: self.pods,
            SERVICES: self.services,
            **self.dependents,
            **self.executor.membership.scaler_stores,
        }
        return self.executor.jobs.writer.expectations.satisfied(obj.metadata.uid, stores)

    def _cache_for(self, key: ObjectKey, obj: JobObject | None) -> JobCache | None:
        cache, executor = self._caches.get(key), self.executor
        if cache and (obj is None or obj.metadata.uid != cache.uid):
            executor.jobs.writer.expectations.forget(cache.uid)
            executor.membership.tasks.forget(key)
            executor.metrics.phase_changed(key.namespace, cache.phase, None)
            del self._caches[key]
            cache = None
        if obj is None and not len(self.jobs):
            executor.jobs.crd.reset()
        if obj is not None and cache is None:
            cache = self._caches[key] = JobCache(obj.metadata.uid)
        return cache
