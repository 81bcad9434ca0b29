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

from dlctl.api.companions import CompanionObject
from dlctl.api.conditions import Condition
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import PODS, SERVICES, UID, ObjectKey, Resource
from dlctl.api.pods import Pod, Service
from dlctl.api.status import JobPhase, JobStatus
from dlctl.clock import Clock
from dlctl.dialects import tolerant
from dlctl.dialects.kinds import Kind
from dlctl.errors import InvalidJobError
from dlctl.informers.store import Store
from dlctl.kube.errors import ConflictError, NamespaceTerminatingError, NotFoundError
from dlctl.reconcilers import rivals, status
from dlctl.reconcilers.adoption import Adopter
from dlctl.reconcilers.children import Renderer
from dlctl.reconcilers.content import ContentError, content_of
from dlctl.reconcilers.controller import Result
from dlctl.reconcilers.creation import Created
from dlctl.reconcilers.definitions import DefinitionCheck, OutdatedDefinitionError
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.elastic import Elastic
from dlctl.reconcilers.elastic.step import with_draft
from dlctl.reconcilers.execute import Executor, JobGoneError
from dlctl.reconcilers.job_metrics import JobFigures
from dlctl.reconcilers.observe import Children, Observed, observe
from dlctl.reconcilers.plan import Desired, Plan, Policy, plan, soonest
from dlctl.reconcilers.reading import reading
from dlctl.reconcilers.refusals import Refusals
from dlctl.reconcilers.rivals import StatusRival, recalled
from dlctl.reconcilers.secrets import Secrets
from dlctl.reconcilers.slices import decided, first_slice
from dlctl.reconcilers.status import Note
from dlctl.reconcilers.tellings import Told

if TYPE_CHECKING:
    from dlctl.reconcilers.expectations import Readable

logger = logging.getLogger(__name__)

# The event that shows our own write usually comes first; this is for when it never does.
STALE_RETRY_S: Final = 5.0
# At most so many seconds between two writes of nothing but replica counts; small jobs, one.
COUNTS_INTERVAL_S: Final = 10.0
COUNTS_PER_S: Final = 100
DEFINITION_OUTDATED: Final = "DefinitionOutdated"
# Where a pod that does not run is news.
_AT_WORK: Final = frozenset({JobPhase.CREATING, JobPhase.RUNNING})


@attrs.define
class Memory:
    """What is remembered of one job: of no consequence if lost."""

    uid: UID
    phase: JobPhase | None = None
    refusals: Refusals = attrs.field(factory=Refusals)
    # Whether the children that another operator has made are labelled as ours.
    taken_over: bool = False
    # The last status of ours, if it holds what another operator's has no room for.
    own: JobStatus | None = None
    rival: StatusRival = attrs.field(factory=StatusRival)
    told: Told = attrs.field(factory=Told)
    secrets: Secrets = attrs.field(factory=Secrets)
    status_written_s: float = float("-inf")
    # The last spec that could be read, while there are pods to be looked after.
    good_spec: msgspec.Raw | None = None
    # The last fault in its content that was logged.
    fault: str = ""


@attrs.frozen
class Turn:
    """One reconciliation of a job: what it was made from, and what came of it."""

    job: Job
    obj: JobObject
    memory: Memory
    renderer: Renderer
    planned: Plan
    # Whether any of its pods has ever run.
    has_run: bool
    draft: Draft | None = None


@attrs.define
class JobReconciler:
    """Brings the jobs of one kind to what their specs ask for."""

    kind: Kind
    jobs: Store[JobObject]
    pods: Store[Pod]
    services: Store[Service]
    executor: Executor
    clock: Clock
    figures: JobFigures
    definition: DefinitionCheck
    policy: Policy = attrs.field(factory=Policy)
    companions: Mapping[Resource, Store[CompanionObject]] = attrs.field(factory=dict)
    # Of a kind whose workers come and go.
    elastic: Elastic | None = None
    _memories: dict[ObjectKey, Memory] = attrs.field(init=False, factory=dict)
    _adopter: Adopter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        executor = self.executor
        transient = frozenset(self.companions) - self.kind.lasting_resources
        self._adopter = Adopter(executor.client, executor.expectations, self.clock, transient)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Take one job one step further; doing it again at once changes nothing."""
        obj = self.jobs.get(key)
        memory = self._memory(key, obj)
        if obj is None or memory is None or obj.metadata.terminating:
            return Result()
        if not self._stores_show_our_writes(obj):
            return Result(requeue_after_s=STALE_RETRY_S)
        try:
            return await self._guarded(obj, memory)
        except OutdatedDefinitionError as error:
            memory.rival = StatusRival()
            self._record(obj, Note("Warning", DEFINITION_OUTDATED, str(error)))
            return Result(requeue_after_s=self.definition.left_s())
        except (JobGoneError, NamespaceTerminatingError):
            # The job was deleted meanwhile, or is about to be; its event is on the way.
            return Result()
        except (ConflictError, NotFoundError):
            # Somebody else has changed the job or a child meanwhile: a normal day.
            return Result(requeue=True)

    async def _guarded(self, obj: JobObject, memory: Memory) -> Result:
        try:
            return await self._step(obj, memory)
        except ContentError as error:
            return await self._malformed(obj, memory, error)

    async def _step(self, obj: JobObject, memory: Memory) -> Result:
        with content_of("reading"):
            # Asked before anything is touched: it takes reading the spec.
            if self.kind.dialect_of(obj).managed_elsewhere(obj):
                return Result()
            if (wait_s := self._pause_left_s(obj, memory)) > 0:
                return Result(requeue_after_s=wait_s)
        read = reading(self.kind, obj, memory.good_spec)
        if isinstance(read.error, ContentError):
            self._report(memory, read.error)
        self.figures.moved(obj.key.namespace, memory.phase, read.status.phase)
        memory.phase = read.status.phase
        if read.error is None:
            ended = read.status.phase in (JobPhase.DONE, JobPhase.FAILED)
            memory.good_spec = None if ended else obj.spec
        if (job := read.job) is None:
            return await self._fail(obj, obj, read.status, str(read.error))
        if job.status.foreign and memory.own:
            job = attrs.evolve(job, status=recalled(job.status, memory.own))
        result = await self._advance(job, read.obj, memory)
        if not self.definition.is_current():
            # Its status was not written, so only a look shows whether it is kept.
            there = await self.executor.read_again(obj, self.kind.resource)
            self.definition.check(self.kind.dialect_of(read.obj).write_status(job.status), there)
        self._shrink(obj, read.status)
        return result

    def _shrink(self, obj: JobObject, known: JobStatus) -> None:
        """Keep no more of the spec of a job that is done than is still needed."""
        # Requests to scale a job that is done are answered by its spec.
        if known.phase in (JobPhase.DONE, JobPhase.FAILED) and not self.kind.scalers:
            smaller = tolerant.at_rest(obj.spec)
            if smaller is not obj.spec:
                self.jobs.shrink(obj, msgspec.structs.replace(obj, spec=smaller))

    async def _advance(self, job: Job, obj: JobObject, memory: Memory) -> Result:
        dialect = self.kind.dialect_of(obj)
        selector = dialect.orphan_selector
        memory.taken_over &= job.status.foreign
        if job.status.foreign and selector and not memory.taken_over:
            labelled = await self._adopter.adopt(job, selector)
            memory.taken_over = True
            if labelled:
                # The stores have to show it before anything is decided.
                return Result(requeue_after_s=0)
        if self.elastic and await self.elastic.readopt(job, self.pods.owned_by(job.uid)):
            return Result(requeue_after_s=0)
        try:
            with content_of("planning"):
                turn = await self._turn(job, obj, memory)
        except InvalidJobError as error:
            return await self._fail(obj, obj, job.status, str(error))
        planned = turn.planned
        current = await self._write_down(turn)
        self._tell(job, obj, planned.notes)
        if job.reporting.tells_pods and planned.status.phase in _AT_WORK:
            pods = self.pods.owned_by(job.uid)
            self._tell(job, obj, await decided(len(pods), memory.told.troubles, pods))
        await self.executor.remove(job, obj, planned)
        await self.executor.force_out(job, obj, planned)
        if planned.expired:
            await self.executor.expire(job, obj)
            return Result()
        try:
            return await self._bring_about(turn, current)
        except InvalidJobError as error:
            # The template is the user's, so what the server refuses in it is the user's to mend.
            return await self._fail(obj, current, planned.status, str(error))

    async def _turn(self, job: Job, obj: JobObject, memory: Memory) -> Turn:
        """Decide what is to be done about a job now."""
        now, pods = self.clock.now(), self.pods.owned_by(job.uid)
        children = Children(
            pods,
            self.services.owned_by(job.uid),
            {r: store.owned_by(job.uid) for r, store in self.companions.items()},
            memory.refusals.blocked,
            memory.refusals.unusual,
        )
        # Of a spec that is known in part no worker is chosen; only who waits for the job is told.
        chooses = not job.partial or job.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE)
        scales = self.elastic is not None and job.elasticity is not None and chooses
        size = max(job.size, len(pods))
        draft = await self.elastic.draft(job, children, size) if self.elastic and scales else None
        drafted = with_draft(job, draft) if draft else job
        renderer = Renderer(drafted, self.kind.dialect_of(obj))
        observed = await decided(size, observe, drafted, children, now)
        desired = Desired(lasting=renderer.dialect.framework.lasting_resources)
        try:
            with content_of("rendering"):
                if not job.partial:
                    launches = draft is None or draft.launches
                    desired = await decided(size, renderer.desired, observed, launches=launches)
        except (ContentError, InvalidJobError) as error:
            drafted = self._unrendered(drafted, observed, memory, error)
        if drafted.partial:
            # Where even this fails, roles stay as they are.
            with suppress(ContentError, InvalidJobError), content_of("rendering"):
                desired = renderer.restricted(observed)
        planned = await decided(size, plan, drafted, observed, desired, now, self.policy)
        planned = self._debounced(job, draft.beside(planned) if draft else planned, memory)
        has_run = status.has_run(planned.status, observed)
        return Turn(job, obj, memory, renderer, first_slice(planned), has_run, draft)

    async def _write_down(self, turn: Turn) -> JobObject:
        """Write the statuses, and return the job as it is then."""
        job, obj, planned = turn.job, turn.obj, turn.planned
        if self.elastic and turn.draft:
            # What a scaler has come to is told before the job forgets that it was about it.
            await self.elastic.answer(job, turn.draft, finished=True)
        current = obj
        if planned.status != job.status:
            current = await self._write_status(obj, obj, job.status, planned.status)
            turn.memory.status_written_s = self.clock.monotonic()
            self.figures.wrote(job, obj.metadata, planned.status, self.clock.now())
        if self.elastic and turn.draft:
            await self.elastic.answer(job, turn.draft, finished=False)
        return current

    async def _bring_about(self, turn: Turn, current: JobObject) -> Result:
        """Make and change what is planned, and return when to look again.

        :raises InvalidJobError: if a job none of whose pods has run can have no pods.
        """
        job, planned, memory = turn.job, turn.planned, turn.memory
        wait_s, changed = self._backoff_left_s(turn), False
        if not wait_s and planned.pods and not memory.secrets.made:
            wait_s = await self.executor.make_secrets(job, turn.renderer, memory.secrets)
        if not wait_s:
            changed = await self._apply(turn)
        if self.elastic and turn.draft:
            self.elastic.want(job.key, turn.draft)
        if job.spec_patch and (planned.pods or planned.status.phase is JobPhase.CREATING):
            await self.executor.write_spec(current, self.kind.resource, job.spec_patch)
        if changed:
            # The status is to say so, and that is for the next plan.
            return Result(requeue_after_s=0)
        left_s = memory.refusals.left_s(job.generation, self.clock.monotonic())
        if planned.unfinished and not wait_s and not left_s:
            return Result(requeue_after_s=0)
        return Result(requeue_after_s=soonest(wait_s or None, left_s, planned.wake_after_s))

    def _backoff_left_s(self, turn: Turn) -> float:
        """Return the seconds before children that were refused may be tried again."""
        left_s = turn.memory.refusals.left_s(turn.job.generation, self.clock.monotonic())
        return left_s if left_s and turn.planned.applies else 0.0

    async def _apply(self, turn: Turn) -> bool:
        """Create and change children; return whether others are refused than before."""
        job, obj, memory = turn.job, turn.obj, turn.memory
        created = Created(refusals=memory.secrets.refusals if turn.planned.pods else {})
        if not created.refusals:
            created = await self.executor.make(job, obj, turn.planned, turn.renderer)
            refused = await self.executor.change(job, turn.planned, turn.renderer)
            created = attrs.evolve(created, refusals={**refused, **created.refusals})
        changed = memory.refusals.update(created, job.generation, self.clock.monotonic())
        self._tell(job, obj, memory.told.refusals(job, created.refusals))
        for refusal in created.refusals.values():
            if isinstance(refusal.fault, ContentError):
                self._report(memory, refusal.fault)
        if (invalid := created.invalid) is not None and not turn.has_run:
            raise InvalidJobError(invalid.error, field="spec")
        return changed

    def _unrendered(
        self, job: Job, observed: Observed, memory: Memory, error: ContentError | InvalidJobError
    ) -> Job:
        """Return a job of which it cannot be worked out what it is to have: its pods stay.

        :raises InvalidJobError: if none of them has ever run.
        """
        if isinstance(error, ContentError):
            self._report(memory, error)
        if not status.has_run(job.status, observed):
            raise InvalidJobError(str(error), field="spec") from error
        return attrs.evolve(job, invalid_reason=str(error), partial=True)

    async def _fail(
        self, obj: JobObject, current: JobObject, written: JobStatus, reason: str
    ) -> Result:
        """Write down why a job of which nothing has run cannot be."""
        resource = self.kind.resource
        new, note = status.invalid(
            written, resource.kind, obj.metadata.generation or 0, reason, self.clock.now()
        )
        await self._write_status(obj, current, written, new)
        self.figures.stated(obj.key.namespace, written, new)
        self._record(obj, note)
        return Result()

    async def _malformed(self, obj: JobObject, memory: Memory, error: ContentError) -> Result:
        """Write down that nothing can be decided about a job, if that much can be written."""
        resource, reason = self.kind.resource, str(error)
        if self._report(memory, error):
            self._record(obj, Note("Warning", f"{resource.kind}Invalid", reason))
        try:
            with content_of("reading the status"):
                written = self.kind.read_status(obj)
            generation = obj.metadata.generation or 0
            new = status.malformed(written, resource.kind, generation, reason, self.clock.now())
            await self._write_status(obj, obj, written, new)
        except ContentError as second:
            self._report(memory, second)
        return Result(requeue=True)

    def _report(self, memory: Memory, error: ContentError) -> bool:
        """Count and log a fault in an object's content; return whether it is a new one."""
        labels = (self.kind.resource.qualified, error.step)
        self.figures.metrics.dlctl_content_errors_total.labels(*labels).inc()
        if memory.fault == str(error):
            return False
        memory.fault = str(error)
        logger.error("content cannot be handled", exc_info=error, extra={"step": error.step})
        return True

    def _pause_left_s(self, obj: JobObject, memory: Memory) -> float:
        """Return the seconds to leave a job as it is, because its status would not stay."""
        now_s = self.clock.monotonic()
        if memory.rival.look(obj.status, now_s):
            self.figures.contested()
            self._record(obj, Note("Warning", rivals.REASON, rivals.MESSAGE))
        return memory.rival.left_s(now_s) or self.definition.left_s()

    def _record(self, obj: JobObject, note: Note) -> None:
        resource, recorder = self.kind.resource, self.executor.recorder
        recorder.record(resource, obj.metadata, note.type, note.reason, note.message)

    def _tell(self, job: Job, obj: JobObject, notes: Iterable[Note]) -> None:
        for note in notes:
            self.executor.tell(job, obj, note)

    async def _write_status(
        self, obj: JobObject, current: JobObject, old: JobStatus, new: JobStatus
    ) -> JobObject:
        """Write the status; ``current`` is the job as our last write has left it.

        :raises OutdatedDefinitionError: if the server has not kept it whole.
        """
        dialect = self.kind.dialect_of(obj)
        with content_of("writing the status"):
            # Of a first status all is written, also what says no more than that there is nothing.
            before = {} if old.phase is JobPhase.NEW else dialect.write_status(old)
            wire = dialect.write_status(new)
        answer = await self.executor.write_status(current, self.kind.resource, before, wire)
        if answer is not current:
            self.definition.check(wire, answer)
            memory = self._memories[obj.key]
            memory.rival.wrote(answer.status)
            memory.own = new if _has_memory(new) else None
        return answer

    def _debounced(self, job: Job, planned: Plan, memory: Memory) -> Plan:
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
        interval_s = min(max(job.size / COUNTS_PER_S, 1.0), COUNTS_INTERVAL_S)
        if any(condition.type in job.reporting.progress for condition in job.status.conditions):
            # Of a job that scales: what matters of workers that come and go is more than counts.
            interval_s = COUNTS_INTERVAL_S
        wait_s = memory.status_written_s + interval_s - self.clock.monotonic()
        if not only_counts or wait_s <= 0:
            return planned
        wake_s = soonest(planned.wake_after_s, wait_s)
        # What there is to tell of the change is told with it.
        return attrs.evolve(planned, status=job.status, notes=(), wake_after_s=wake_s)

    def _stores_show_our_writes(self, obj: JobObject) -> bool:
        stores: dict[Resource, Readable] = {
            self.kind.resource: self.jobs,
            PODS: self.pods,
            SERVICES: self.services,
            **self.companions,
            **(self.elastic.stores if self.elastic else {}),
        }
        return self.executor.expectations.ready(obj.metadata.uid, stores)

    def _memory(self, key: ObjectKey, obj: JobObject | None) -> Memory | None:
        memory = self._memories.get(key)
        if memory and (obj is None or obj.metadata.uid != memory.uid):
            self.executor.expectations.forget(memory.uid)
            if self.elastic:
                self.elastic.errands.forget(key)
            self.figures.moved(key.namespace, memory.phase, None)
            del self._memories[key]
            memory = None
        if obj is None and not len(self.jobs):
            self.definition.reset()
        if obj is not None and memory is None:
            memory = self._memories[key] = Memory(obj.metadata.uid)
        return memory


def _has_memory(new: JobStatus) -> bool:
    """Return whether a status says what cannot be seen of the job's children."""
    return bool(new.restarts) or any(r.completed for r in new.replica_statuses)


def _completed(status: JobStatus) -> Mapping[str, frozenset[int]]:
    return {replica.type: replica.completed for replica in status.replica_statuses}


def _without_progress(job: Job, new: JobStatus) -> tuple[Condition, ...]:
    """Return the new conditions without those that only say how far a job has come."""
    known = {condition.type for condition in job.status.conditions}
    minor = job.reporting.progress
    return tuple(c for c in new.conditions if c.type in known or c.type not in minor)
