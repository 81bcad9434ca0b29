"""The reconciler of one kind of job: read, observe, plan, carry out.

Level-triggered: it is given a key and nothing else. What it remembers of a job between two calls
saves work or writes; losing it changes no decision.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

from dlctl.api.conditions import Condition
from dlctl.api.dependents import DependentObject
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import PODS, SERVICES, UID, ObjectKey, Resource
from dlctl.api.pods import Pod, Service
from dlctl.api.status import JobPhase, JobStatus
from dlctl.clock import Clock
from dlctl.controller.worker_loop import Result
from dlctl.dialects import lenient_reader
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError
from dlctl.informers.store import Store
from dlctl.kube.errors import ConflictError, NamespaceTerminatingError, NotFoundError
from dlctl.reconcilers import job_status, status_conflicts
from dlctl.reconcilers.children.adoption import Adopter
from dlctl.reconcilers.children.creation import CreateResult
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.children.secrets import SecretState
from dlctl.reconcilers.content_errors import ContentError, wrap_content_errors
from dlctl.reconcilers.crd_check import CRDCheck, OutdatedCRDError
from dlctl.reconcilers.executor import Executor, JobGoneError
from dlctl.reconcilers.job_decoding import decode_job
from dlctl.reconcilers.job_metrics import JobMetrics
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.large_jobs import first_slice, to_thread_if_large
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.plan_membership import with_membership_plan
from dlctl.reconcilers.membership.reconciler import MembershipReconciler
from dlctl.reconcilers.observe import Children, Observed, observe
from dlctl.reconcilers.plan import Desired, Plan, Policy, earliest, plan
from dlctl.reconcilers.pod_events import EventDedup
from dlctl.reconcilers.rejected_children import RejectedChildren
from dlctl.reconcilers.status_conflicts import StatusConflictDetector, restore_own_status

if TYPE_CHECKING:
    from dlctl.controller.expectations import ChildStore

logger = logging.getLogger(__name__)

# The event that shows our own write usually comes first; this is for when it never does.
STALE_RETRY_S: Final = 5.0
# At most so many seconds between two writes of nothing but replica counts; small jobs, one.
COUNTS_INTERVAL_S: Final = 10.0
COUNTS_PER_S: Final = 100
CRD_OUTDATED: Final = "CRDOutdated"
# Where a pod that does not run is news.
_ACTIVE_PHASES: Final = frozenset({JobPhase.CREATING, JobPhase.RUNNING})


@attrs.define
class JobCache:
    """What is remembered of one job: of no consequence if lost."""

    uid: UID
    phase: JobPhase | None = None
    rejected: RejectedChildren = attrs.field(factory=RejectedChildren)
    # Whether the children that another operator has made are labelled as ours.
    adopted: bool = False
    # The last status of ours, if it holds what another operator's has no room for.
    last_status: JobStatus | None = None
    status_conflicts: StatusConflictDetector = attrs.field(factory=StatusConflictDetector)
    event_dedup: EventDedup = attrs.field(factory=EventDedup)
    secrets: SecretState = attrs.field(factory=SecretState)
    status_written_s: float = float("-inf")
    # The last spec that could be read, while there are pods to be looked after.
    last_good_spec: msgspec.Raw | None = None
    # The last fault in its content that was logged.
    last_fault: str = ""


@attrs.frozen
class ReconcileContext:
    """One reconciliation of a job: what it was made from, and what came of it."""

    job: Job
    obj: JobObject
    cache: JobCache
    renderer: Renderer
    plan: Plan
    # Whether any of its pods has ever run.
    has_run: bool
    membership_plan: MembershipPlan | None = None


@attrs.define
class JobReconciler:
    """Brings the jobs of one kind to what their specs ask for."""

    kind: Kind
    jobs: Store[JobObject]
    pods: Store[Pod]
    services: Store[Service]
    executor: Executor
    clock: Clock
    metrics: JobMetrics
    crd: CRDCheck
    policy: Policy = attrs.field(factory=Policy)
    dependents: Mapping[Resource, Store[DependentObject]] = attrs.field(factory=dict)
    # Of a kind whose workers come and go.
    membership: MembershipReconciler | None = None
    _caches: dict[ObjectKey, JobCache] = attrs.field(init=False, factory=dict)
    _adopter: Adopter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        executor = self.executor
        transient = frozenset(self.dependents) - self.kind.retained_resources
        self._adopter = Adopter(executor.client, executor.expectations, self.clock, transient)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Take one job one step further; doing it again at once changes nothing."""
        obj = self.jobs.get(key)
        cache = self._cache_for(key, obj)
        if obj is None or cache is None or obj.metadata.is_terminating:
            return Result()
        if not self._expectations_satisfied(obj):
            return Result(requeue_after_s=STALE_RETRY_S)
        try:
            return await self._reconcile_guarded(obj, cache)
        except OutdatedCRDError as error:
            cache.status_conflicts = StatusConflictDetector()
            self._record_event(obj, EventNote("Warning", CRD_OUTDATED, str(error)))
            return Result(requeue_after_s=self.crd.left_s())
        except (JobGoneError, NamespaceTerminatingError):
            # The job was deleted meanwhile, or is about to be; its event is on the way.
            return Result()
        except (ConflictError, NotFoundError):
            # Somebody else has changed the job or a child meanwhile: a normal day.
            return Result(requeue=True)

    async def _reconcile_guarded(self, obj: JobObject, cache: JobCache) -> Result:
        try:
            return await self._read_and_reconcile(obj, cache)
        except ContentError as error:
            return await self._mark_malformed(obj, cache, error)

    async def _read_and_reconcile(self, obj: JobObject, cache: JobCache) -> Result:
        with wrap_content_errors("reading"):
            # Asked before anything is touched: it takes reading the spec.
            if self.kind.dialect_of(obj).managed_by_external_controller(obj):
                return Result()
            if (wait_s := self._pause_left_s(obj, cache)) > 0:
                return Result(requeue_after_s=wait_s)
        read = decode_job(self.kind, obj, cache.last_good_spec)
        if isinstance(read.error, ContentError):
            self._report_error(cache, read.error)
        self.metrics.phase_changed(obj.key.namespace, cache.phase, read.status.phase)
        cache.phase = read.status.phase
        if read.error is None:
            ended = read.status.phase in (JobPhase.DONE, JobPhase.FAILED)
            cache.last_good_spec = None if ended else obj.spec
        if (job := read.job) is None:
            return await self._mark_invalid(obj, obj, read.status, str(read.error))
        if job.status.written_by_other_operator and cache.last_status:
            job = attrs.evolve(job, status=restore_own_status(job.status, cache.last_status))
        result = await self._reconcile_job(job, read.obj, cache)
        if not self.crd.is_current():
            # Its status was not written, so only a look shows whether it is kept.
            stored = await self.executor.refetch(obj, self.kind.resource)
            self.crd.check(self.kind.dialect_of(read.obj).write_status(job.status), stored)
        self._drop_spec(obj, read.status)
        return result

    def _drop_spec(self, obj: JobObject, known: JobStatus) -> None:
        """Keep no more of the spec of a job that is done than is still needed."""
        # Requests to scale a job that is done are answered by its spec.
        if known.phase in (JobPhase.DONE, JobPhase.FAILED) and not self.kind.scalers:
            smaller = lenient_reader.prune_finished_spec(obj.spec)
            if smaller is not obj.spec:
                self.jobs.shrink(obj, msgspec.structs.replace(obj, spec=smaller))

    async def _reconcile_job(self, job: Job, obj: JobObject, cache: JobCache) -> Result:
        dialect = self.kind.dialect_of(obj)
        selector = dialect.orphan_selector
        cache.adopted &= job.status.written_by_other_operator
        if job.status.written_by_other_operator and selector and not cache.adopted:
            labelled = await self._adopter.adopt(job, selector)
            cache.adopted = True
            if labelled:
                # The stores have to show it before anything is decided.
                return Result(requeue_after_s=0)
        if self.membership and await self.membership.readopt(job, self.pods.owned_by(job.uid)):
            return Result(requeue_after_s=0)
        try:
            with wrap_content_errors("planning"):
                context = await self._make_context(job, obj, cache)
        except InvalidJobError as error:
            return await self._mark_invalid(obj, obj, job.status, str(error))
        planned = context.plan
        current = await self._patch_statuses(context)
        self._record_events(job, obj, planned.notes)
        if job.messages.emits_pod_events and planned.status.phase in _ACTIVE_PHASES:
            pods = self.pods.owned_by(job.uid)
            self._record_events(
                job, obj, await to_thread_if_large(len(pods), cache.event_dedup.pod_problems, pods)
            )
        await self.executor.delete(job, obj, planned)
        await self.executor.force_delete(job, obj, planned)
        if planned.ttl_expired:
            await self.executor.delete_job(job, obj)
            return Result()
        try:
            return await self._apply_plan(context, current)
        except InvalidJobError as error:
            # The template is the user's, so what the server refuses in it is the user's to mend.
            return await self._mark_invalid(obj, current, planned.status, str(error))

    async def _make_context(self, job: Job, obj: JobObject, cache: JobCache) -> ReconcileContext:
        """Decide what is to be done about a job now."""
        now, pods = self.clock.now(), self.pods.owned_by(job.uid)
        children = Children(
            pods,
            self.services.owned_by(job.uid),
            {r: store.owned_by(job.uid) for r, store in self.dependents.items()},
            cache.rejected.messages,
            cache.rejected.actionable,
        )
        # Of a spec that is known in part no worker is chosen; only who waits for the job is told.
        may_choose = not job.is_partial or job.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE)
        is_elastic = self.membership is not None and job.elasticity is not None and may_choose
        size = max(job.total_replicas, len(pods))
        membership_plan = (
            await self.membership.plan(job, children, size)
            if self.membership and is_elastic
            else None
        )
        with_members = with_membership_plan(job, membership_plan) if membership_plan else job
        renderer = Renderer(with_members, self.kind.dialect_of(obj))
        observed = await to_thread_if_large(size, observe, with_members, children, now)
        desired = Desired(retained_resources=renderer.dialect.framework.retained_resources)
        try:
            with wrap_content_errors("rendering"):
                if not job.is_partial:
                    create_launcher = membership_plan is None or membership_plan.create_launcher
                    desired = await to_thread_if_large(
                        size, renderer.desired, observed, create_launcher=create_launcher
                    )
        except (ContentError, InvalidJobError) as error:
            with_members = self._as_partial(with_members, observed, cache, error)
        if with_members.is_partial:
            # Where even this fails, roles stay as they are.
            with suppress(ContentError, InvalidJobError), wrap_content_errors("rendering"):
                desired = renderer.fallback_desired(observed)
        planned = await to_thread_if_large(
            size, plan, with_members, observed, desired, now, self.policy
        )
        planned = self._debounce_counts(
            job, membership_plan.merge_into(planned) if membership_plan else planned, cache
        )
        has_run = job_status.has_run(planned.status, observed)
        return ReconcileContext(
            job, obj, cache, renderer, first_slice(planned), has_run, membership_plan
        )

    async def _patch_statuses(self, context: ReconcileContext) -> JobObject:
        """Write the statuses, and return the job as it is then."""
        job, obj, planned = context.job, context.obj, context.plan
        if self.membership and context.membership_plan:
            # What a scaler has come to is told before the job forgets that it was about it.
            await self.membership.patch_scalers(job, context.membership_plan, finished=True)
        current = obj
        if planned.status != job.status:
            current = await self._patch_status(obj, obj, job.status, planned.status)
            context.cache.status_written_s = self.clock.monotonic()
            self.metrics.status_written(job, obj.metadata, planned.status, self.clock.now())
        if self.membership and context.membership_plan:
            await self.membership.patch_scalers(job, context.membership_plan, finished=False)
        return current

    async def _apply_plan(self, context: ReconcileContext, current: JobObject) -> Result:
        """Make and change what is planned, and return when to look again.

        :raises InvalidJobError: if a job none of whose pods has run can have no pods.
        """
        job, planned, cache = context.job, context.plan, context.cache
        wait_s, changed = self._backoff_left_s(context), False
        if not wait_s and planned.pods and not cache.secrets.created:
            wait_s = await self.executor.create_secrets(job, context.renderer, cache.secrets)
        if not wait_s:
            changed = await self._write_children(context)
        if self.membership and context.membership_plan:
            self.membership.set_wanted(job.key, context.membership_plan)
        if job.spec_patch and (planned.pods or planned.status.phase is JobPhase.CREATING):
            await self.executor.patch_spec(current, self.kind.resource, job.spec_patch)
        if changed:
            # The status is to say so, and that is for the next plan.
            return Result(requeue_after_s=0)
        left_s = cache.rejected.left_s(job.generation, self.clock.monotonic())
        if planned.has_more and not wait_s and not left_s:
            return Result(requeue_after_s=0)
        return Result(requeue_after_s=earliest(wait_s or None, left_s, planned.requeue_after_s))

    def _backoff_left_s(self, context: ReconcileContext) -> float:
        """Return the seconds before children that were refused may be tried again."""
        left_s = context.cache.rejected.left_s(context.job.generation, self.clock.monotonic())
        return left_s if left_s and context.plan.has_writes else 0.0

    async def _write_children(self, context: ReconcileContext) -> bool:
        """Create and change children; return whether others are refused than before."""
        job, obj, cache = context.job, context.obj, context.cache
        created = CreateResult(rejections=cache.secrets.rejections if context.plan.pods else {})
        if not created.rejections:
            created = await self.executor.create(job, obj, context.plan, context.renderer)
            rejected_updates = await self.executor.update(job, context.plan, context.renderer)
            created = attrs.evolve(created, rejections={**rejected_updates, **created.rejections})
        changed = cache.rejected.update(created, job.generation, self.clock.monotonic())
        self._record_events(job, obj, cache.event_dedup.rejections(job, created.rejections))
        for rejection in created.rejections.values():
            if isinstance(rejection.exception, ContentError):
                self._report_error(cache, rejection.exception)
        if (invalid := created.invalid) is not None and not context.has_run:
            raise InvalidJobError(invalid.server_message, field="spec")
        return changed

    def _as_partial(
        self, job: Job, observed: Observed, cache: JobCache, error: ContentError | InvalidJobError
    ) -> Job:
        """Return a job of which it cannot be worked out what it is to have: its pods stay.

        :raises InvalidJobError: if none of them has ever run.
        """
        if isinstance(error, ContentError):
            self._report_error(cache, error)
        if not job_status.has_run(job.status, observed):
            raise InvalidJobError(str(error), field="spec") from error
        return attrs.evolve(job, invalid_reason=str(error), is_partial=True)

    async def _mark_invalid(
        self, obj: JobObject, current: JobObject, written: JobStatus, reason: str
    ) -> Result:
        """Write down why a job of which nothing has run cannot be."""
        resource = self.kind.resource
        new, note = job_status.invalid_status(
            written, resource.kind, obj.metadata.generation or 0, reason, self.clock.now()
        )
        await self._patch_status(obj, current, written, new)
        self.metrics.count_training_operator(obj.key.namespace, written, new)
        self._record_event(obj, note)
        return Result()

    async def _mark_malformed(self, obj: JobObject, cache: JobCache, error: ContentError) -> Result:
        """Write down that nothing can be decided about a job, if that much can be written."""
        resource, reason = self.kind.resource, str(error)
        if self._report_error(cache, error):
            self._record_event(obj, EventNote("Warning", f"{resource.kind}Invalid", reason))
        try:
            with wrap_content_errors("reading the status"):
                written = self.kind.read_status(obj)
            generation = obj.metadata.generation or 0
            new = job_status.malformed_status(
                written, resource.kind, generation, reason, self.clock.now()
            )
            await self._patch_status(obj, obj, written, new)
        except ContentError as second:
            self._report_error(cache, second)
        return Result(requeue=True)

    def _report_error(self, cache: JobCache, error: ContentError) -> bool:
        """Count and log a fault in an object's content; return whether it is a new one."""
        labels = (self.kind.resource.group_resource, error.step)
        self.metrics.metrics.dlctl_content_errors_total.labels(*labels).inc()
        if cache.last_fault == str(error):
            return False
        cache.last_fault = str(error)
        logger.error("content cannot be handled", exc_info=error, extra={"step": error.step})
        return True

    def _pause_left_s(self, obj: JobObject, cache: JobCache) -> float:
        """Return the seconds to leave a job as it is, because its status would not stay."""
        now_s = self.clock.monotonic()
        if cache.status_conflicts.detect(obj.status, now_s):
            self.metrics.status_conflict()
            self._record_event(
                obj, EventNote("Warning", status_conflicts.REASON, status_conflicts.MESSAGE)
            )
        return cache.status_conflicts.left_s(now_s) or self.crd.left_s()

    def _record_event(self, obj: JobObject, note: EventNote) -> None:
        resource, recorder = self.kind.resource, self.executor.recorder
        recorder.record(resource, obj.metadata, note.type, note.reason, note.message)

    def _record_events(self, job: Job, obj: JobObject, notes: Iterable[EventNote]) -> None:
        for note in notes:
            self.executor.record_event(job, obj, note)

    async def _patch_status(
        self, obj: JobObject, current: JobObject, old: JobStatus, new: JobStatus
    ) -> JobObject:
        """Write the status; ``current`` is the job as our last write has left it.

        :raises OutdatedDefinitionError: if the server has not kept it whole.
        """
        dialect = self.kind.dialect_of(obj)
        with wrap_content_errors("writing the status"):
            # Of a first status all is written, also what says no more than that there is nothing.
            before = {} if old.phase is JobPhase.NEW else dialect.write_status(old)
            wire = dialect.write_status(new)
        updated = await self.executor.patch_status(current, self.kind.resource, before, wire)
        if updated is not current:
            self.crd.check(wire, updated)
            cache = self._caches[obj.key]
            cache.status_conflicts.record_own_write(updated.status)
            cache.last_status = new if _has_unobservable_state(new) else None
        return updated

    def _debounce_counts(self, job: Job, planned: Plan, cache: JobCache) -> Plan:
        """Hold back a status in which only the numbers of replicas differ from the last one.

        A job of 1,000 replicas would write 1,000 of them while it starts.
        """
        only_counts = job.status != planned.status and job.status == attrs.evolve(
            planned.status,
            replica_statuses=job.status.replica_statuses,
            conditions=_without_progress(job, planned.status),
        )
        # A replica that is done runs again if its pod goes before its success is written.
        only_counts = only_counts and _completed(job.status) == _completed(planned.status)
        interval_s = min(max(job.total_replicas / COUNTS_PER_S, 1.0), COUNTS_INTERVAL_S)
        if any(
            condition.type in job.messages.progress_conditions
            for condition in job.status.conditions
        ):
            # Of a job that scales: what matters of workers that come and go is more than counts.
            interval_s = COUNTS_INTERVAL_S
        wait_s = cache.status_written_s + interval_s - self.clock.monotonic()
        if not only_counts or wait_s <= 0:
            return planned
        wake_s = earliest(planned.requeue_after_s, wait_s)
        # What there is to tell of the change is told with it.
        return attrs.evolve(planned, status=job.status, notes=(), requeue_after_s=wake_s)

    def _expectations_satisfied(self, obj: JobObject) -> bool:
        stores: dict[Resource, ChildStore] = {
            self.kind.resource: self.jobs,
            PODS: self.pods,
            SERVICES: self.services,
            **self.dependents,
            **(self.membership.scaler_stores if self.membership else {}),
        }
        return self.executor.expectations.satisfied(obj.metadata.uid, stores)

    def _cache_for(self, key: ObjectKey, obj: JobObject | None) -> JobCache | None:
        cache = self._caches.get(key)
        if cache and (obj is None or obj.metadata.uid != cache.uid):
            self.executor.expectations.forget(cache.uid)
            if self.membership:
                self.membership.tasks.forget(key)
            self.metrics.phase_changed(key.namespace, cache.phase, None)
            del self._caches[key]
            cache = None
        if obj is None and not len(self.jobs):
            self.crd.reset()
        if obj is not None and cache is None:
            cache = self._caches[key] = JobCache(obj.metadata.uid)
        return cache


def _has_unobservable_state(new: JobStatus) -> bool:
    """Return whether a status says what cannot be seen of the job's children."""
    return bool(new.restarts) or any(r.completed_indexes for r in new.replica_statuses)


def _completed(status: JobStatus) -> Mapping[str, frozenset[int]]:
    return {replica.type: replica.completed_indexes for replica in status.replica_statuses}


def _without_progress(job: Job, new: JobStatus) -> tuple[Condition, ...]:
    """Return the new conditions without those that only say how far a job has come."""
    known = {condition.type for condition in job.status.conditions}
    minor = job.messages.progress_conditions
    return tuple(c for c in new.conditions if c.type in known or c.type not in minor)
