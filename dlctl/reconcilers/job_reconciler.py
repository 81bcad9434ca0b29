"""The reconciler of one kind of job: get, read, observe, plan, apply.

Level-triggered: its only input is a key. The state that it keeps of a job between two calls saves
work or writes; losing it changes no decision.
"""

from typing import Final

import attrs
import msgspec

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.backoff import Backoff
from dlctl.controller.controller import Result
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.finished_spec import prune_finished_spec
from dlctl.dialects.kind import Kind
from dlctl.kube.errors import ConflictError, NamespaceTerminatingError, NotFoundError
from dlctl.reconcilers.applying.executor import Executor
from dlctl.reconcilers.children.adoption import Adopter
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.content_error_log import ContentErrorLog
from dlctl.reconcilers.job.crd_check import StatusDroppedError
from dlctl.reconcilers.job.decoder import JobDecoder
from dlctl.reconcilers.job.decoding import DecodedJob, replica_count, with_own_status
from dlctl.reconcilers.job.metrics import JobMetrics
from dlctl.reconcilers.job.status_guard import StatusGuard
from dlctl.reconcilers.job.status_rejection import StatusRejectedError
from dlctl.reconcilers.job.stores import JobStores
from dlctl.reconcilers.job.writer import JobGoneError, StatusSupersededError
from dlctl.reconcilers.job_planner import JobPlanner
from dlctl.reconcilers.large_jobs.slots import MAX_REPLICAS_WITHOUT_SLOT, LargeJobSlots
from dlctl.reconcilers.planning.end import is_edited_after_end
from dlctl.reconcilers.status.invalid_status import invalid_plan, malformed_plan

# While the stores do not show dlctl's own writes. A look at them costs little, and a large job
# waits for one after each slice of its children.
_STALE_BACKOFF: Final = Backoff(base_s=0.1, cap_s=0.2)


@attrs.define
class JobReconciler:
    """Reconciles the jobs of one kind with their specs."""

    kind: Kind
    stores: JobStores
    guard: StatusGuard
    adopter: Adopter
    planner: JobPlanner
    executor: Executor
    decoder: JobDecoder
    slots_for_replicas: LargeJobSlots
    slots_for_specs: LargeJobSlots
    metrics: JobMetrics
    content_errors: ContentErrorLog
    _caches: dict[ObjectKey, JobCache] = attrs.field(init=False, factory=dict)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Take one job one step further: get, read, observe, plan, apply. Idempotent."""
        stored = self.stores.jobs.get(key)
        cache = self._cache_for(key, stored)
        if stored is None or cache is None or stored.metadata.is_terminating:
            self.slots_for_replicas.withdraw(key)
            self.slots_for_specs.withdraw(key)
            self.stores.terminated_pods.forget(self.kind.resource, key)
            return Result()
        if not self.stores.expectations_satisfied(key.namespace, stored.metadata.uid):
            cache.stale_count += 1
            return Result(requeue_after_s=_STALE_BACKOFF.delay_s(cache.stale_count))
        cache.stale_count = 0
        try:
            with self.slots_for_specs.slot_if(key, is_large=not stored.has_spec) as may_go_on:
                if not may_go_on:
                    return Result(is_waiting=True)
                return await self._reconcile_stored(stored, cache)
        except (JobGoneError, NamespaceTerminatingError, StatusSupersededError):
            # The job was deleted or changed meanwhile, or is about to be: its event enqueues it.
            return Result()
        except (ConflictError, NotFoundError) as error:
            # Another client changed the job or a child meanwhile, which is common.
            return Result(requeue=True, error=error)

    async def _reconcile_stored(self, stored: JobObject, cache: JobCache) -> Result:
        key = stored.metadata.key
        pods = self.stores.pods.owned_count(key.namespace, stored.metadata.uid)
        obj, decoded = await self.decoder.decode(stored, cache.last_good_spec, has_pods=pods > 0)
        is_large = max(pods, replica_count(decoded)) > MAX_REPLICAS_WITHOUT_SLOT
        try:
            with self.slots_for_replicas.slot_if(key, is_large=is_large) as may_go_on:
                if not may_go_on:
                    return Result(is_waiting=True)
                try:
                    return await self._reconcile_decoded(stored, obj, decoded, cache)
                except ContentError as error:
                    # Its status may be refused, too.
                    return await self._apply_malformed(obj, cache, error)
        except StatusDroppedError:
            return Result(requeue_after_s=await self.guard.report_dropped(obj, cache))
        except StatusRejectedError as error:
            self.guard.report_rejected(obj, cache, error)
            raise

    async def _reconcile_decoded(
        self,
        stored: JobObject,
        obj: DecodedObject,
        decoded: DecodedJob | ContentError,
        cache: JobCache,
    ) -> Result:
        with wrap_content_errors(Step.READING):
            if obj.dialect.managed_by_external_controller(obj):
                self.stores.terminated_pods.forget(self.kind.resource, stored.key)
                return Result()
            self.guard.detect_conflict(obj, cache)
        if (left_s := self.guard.left_s(obj, cache)) > 0:
            return Result(requeue_after_s=left_s)
        self.guard.crd.start_attempt()
        if obj.version_problem:
            return await self._apply_unknown_version(obj, cache)
        if isinstance(decoded, ContentError):
            raise decoded
        self._record_read(stored, decoded, cache)
        await self.guard.check_stored(decoded.obj, decoded.status)
        read = with_own_status(decoded, cache.last_status)
        result = await self._plan_and_apply(read, cache)
        self._prune_spec(stored, read)
        return result

    async def _plan_and_apply(self, read: DecodedJob, cache: JobCache) -> Result:
        if read.job is None:
            error = str(read.error)
            self.stores.terminated_pods.forget(self.kind.resource, read.obj.key)
            planned = self.planner.plan_status(invalid_plan, read.obj, read.status, cache, error)
        elif await self._adopt(read.job, read.obj.dialect, cache):
            # Planning requires that the stores show the adopted children.
            return Result(requeue_after_s=0)
        else:
            observed, wait_s = await self.planner.observe(read.job, cache)
            if wait_s > 0:
                return Result(requeue_after_s=wait_s)
            context, plan = await self.planner.plan(read.job, read.obj, observed, cache)
            result = await self.executor.apply(context, plan)
            judged = {} if plan.is_unfinished else observed.judged_terminated_pods
            self.stores.terminated_pods.remove(
                self.kind.resource, read.obj.key, read.job.uid, judged
            )
            return result
        return await self.executor.apply(*planned)

    def _record_read(self, stored: JobObject, read: DecodedJob, cache: JobCache) -> None:
        """Record the phase of a job, its last valid spec, and content that cannot be processed."""
        if isinstance(read.error, ContentError):
            self.content_errors.report(cache, read.error)
        self.metrics.phase_changed(stored.key.namespace, cache.phase, read.status.phase)
        cache.phase = read.status.phase
        cache.for_mpi_operator = read.obj.dialect.framework.creates_launcher_jobs
        if read.error is None:
            is_kept = stored.has_spec and not read.status.is_finished
            cache.last_good_spec = stored.spec if is_kept else None

    async def _adopt(self, job: Job, dialect: Dialect, cache: JobCache) -> bool:
        """Label children that lack dlctl's label; return whether any child was written."""
        other_operator, selector = job.status.written_by_other_operator, dialect.orphan_selector
        # Of a job that had ended, children that its policy keeps were not adopted.
        may_have_orphans = other_operator or is_edited_after_end(job)
        if not may_have_orphans:
            cache.adopted_generation = None
        elif selector and cache.adopted_generation != job.generation:
            changed = False
            if other_operator:
                dependents = self.stores.dependents_of(job.key.namespace, job.uid)
                changed = await self.adopter.reset_applied(job, dependents)
            changed |= await self.adopter.adopt(job, selector)
            cache.adopted_generation = job.generation
            if changed:
                return True
        if await self._adopt_retries(job, cache):
            return True
        pods = self.stores.pods.owned_by(job.key.namespace, job.uid)
        return await self.adopter.readopt(job, pods)

    async def _adopt_retries(self, job: Job, cache: JobCache) -> bool:
        """Label new pods of a launcher's Job that another operator created."""
        if job.status.is_finished or job.status.phase is JobPhase.CLEAN_UP:
            return False
        namespace = job.key.namespace
        for batch_job in self.stores.launcher_jobs.owned_by(namespace, job.uid):
            shown = self.stores.pods.owned_count(namespace, batch_job.metadata.uid)
            count = batch_job.pod_count
            if not batch_job.labels_its_pods and count > max(shown, cache.adopted_pod_count):
                adopted = await self.adopter.adopt_retries(job, batch_job)
                cache.adopted_pod_count = count
                return adopted
        return False

    async def _apply_unknown_version(self, obj: DecodedObject, cache: JobCache) -> Result:
        """Report why the version of a job is unknown; only a change of the job settles it."""
        status, problem = _read_status(obj), obj.version_problem
        context, plan = self.planner.plan_status(malformed_plan, obj, status, cache, problem)
        return await self.executor.apply(context, attrs.evolve(plan, requeue=False))

    async def _apply_malformed(
        self, obj: DecodedObject, cache: JobCache, error: ContentError
    ) -> Result:
        """Report that a job's content cannot be processed, in its status if it can be written."""
        self.content_errors.report(cache, error)
        # Its next plan judges those that have terminated until then.
        self.stores.terminated_pods.remove(self.kind.resource, obj.key, obj.metadata.uid, {})
        try:
            status = _read_status(obj)
            planned = self.planner.plan_status(malformed_plan, obj, status, cache, str(error))
            return await self.executor.apply(*planned)
        except ContentError as second:
            self.content_errors.report(cache, second)
        context, plan = self.planner.plan_status(
            malformed_plan, obj, JobStatus(), cache, str(error)
        )
        return await self.executor.apply(context, attrs.evolve(plan, status=context.job.status))

    def _prune_spec(self, stored: JobObject, read: DecodedJob) -> None:
        """Drop the parts of a finished job's spec that are no longer needed."""
        # Kinds with scalers keep it: it is needed to process scalers of finished jobs.
        if read.status.is_finished and stored.has_spec and not self.kind.scalers:
            pruned = prune_finished_spec(stored.spec, read.obj)
            if pruned is not stored.spec:
                self.stores.jobs.prune(stored, msgspec.structs.replace(stored, spec=pruned))

    def _cache_for(self, key: ObjectKey, obj: JobObject | None) -> JobCache | None:
        cache = self._caches.get(key)
        if cache and (obj is None or obj.metadata.uid != cache.uid):
            self._forget(key, self._caches.pop(key))
            cache = None
        if obj is None and not len(self.stores.jobs):
            self.guard.crd.reset()
        if obj is not None and cache is None:
            cache = self._caches[key] = JobCache(obj.metadata.uid)
        return cache

    def _forget(self, key: ObjectKey, cache: JobCache) -> None:
        """Drop what is kept of a job that is gone, even if another one has its name."""
        self.stores.expectations.forget(cache.uid)
        self.decoder.forget(cache.uid)
        self.planner.forget(key)
        mpi = cache.for_mpi_operator
        self.metrics.phase_changed(key.namespace, cache.phase, None, for_mpi_operator=mpi)
        if cache.launcher_job is not None:
            self.metrics.launcher_gone(cache.launcher_job)


def _read_status(obj: DecodedObject) -> JobStatus:
    with wrap_content_errors(Step.READING_STATUS):
        return obj.dialect.read_status(obj)
