"""The reconciler of one kind of job: read, observe, plan, carry out.

Level-triggered: it is given a key and nothing else. What it remembers of a job between two calls
saves work or writes; losing it changes no decision.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from dlctl.api.companions import CompanionObject
from dlctl.api.conditions import Condition
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import PODS, SERVICES, UID, Object, ObjectKey, Resource
from dlctl.api.pods import Pod, Service
from dlctl.api.status import JobPhase, JobStatus
from dlctl.clock import Clock
from dlctl.dialects.kinds import Kind
from dlctl.errors import InvalidJobError
from dlctl.informers.store import Store
from dlctl.kube.errors import (
    ConflictError,
    InvalidError,
    NamespaceTerminatingError,
    NotFoundError,
)
from dlctl.reconcilers import status
from dlctl.reconcilers.children import Renderer
from dlctl.reconcilers.controller import Result
from dlctl.reconcilers.creation import Created
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.elastic import Elastic
from dlctl.reconcilers.elastic.step import with_draft
from dlctl.reconcilers.execute import Executor
from dlctl.reconcilers.job_metrics import JobFigures
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan, Policy, plan
from dlctl.reconcilers.secrets import Secrets
from dlctl.reconcilers.status import Note
from dlctl.reconcilers.tellings import Told

if TYPE_CHECKING:
    from dlctl.reconcilers.expectations import Readable

# The event that shows our own write usually comes first; this is for when it never does.
STALE_RETRY_S: Final = 5.0
BLOCKED_RETRY_S: Final = 10.0
# At most so many seconds between two writes of nothing but replica counts; small jobs, one.
COUNTS_INTERVAL_S: Final = 10.0
COUNTS_PER_S: Final = 100
# Where a pod that does not run is news.
_AT_WORK: Final = frozenset({JobPhase.CREATING, JobPhase.RUNNING})


@attrs.define
class Memory:
    """What is remembered of one job: of no consequence if lost."""

    uid: UID
    phase: JobPhase | None = None
    blocked: Mapping[str, str] = attrs.field(factory=dict)
    # Whether the children that another operator has made are labelled as ours.
    taken_over: bool = False
    told: Told = attrs.field(factory=Told)
    secrets: Secrets = attrs.field(factory=Secrets)
    status_written_s: float = float("-inf")


@attrs.frozen
class Turn:
    """One reconciliation of a job: what it was made from, and what came of it."""

    job: Job
    obj: JobObject
    memory: Memory
    renderer: Renderer
    planned: Plan
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
    policy: Policy = attrs.field(factory=Policy)
    companions: Mapping[Resource, Store[CompanionObject]] = attrs.field(factory=dict)
    # Of a kind whose workers come and go.
    elastic: Elastic | None = None
    _memories: dict[ObjectKey, Memory] = attrs.field(init=False, factory=dict)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Take one job one step further; doing it again at once changes nothing."""
        obj = self.jobs.get(key)
        memory = self._memory(key, obj)
        if obj is None or memory is None or obj.metadata.terminating:
            return Result()
        if not self._stores_show_our_writes(obj):
            return Result(requeue_after_s=STALE_RETRY_S)
        # Asked second: it takes reading the spec.
        if self.kind.dialect_of(obj).managed_elsewhere(obj):
            return Result()
        written = self.kind.read_status(obj)
        self.figures.moved(key.namespace, memory.phase, written.phase)
        memory.phase = written.phase
        try:
            job = self.kind.read(obj)
            return await self._advance(job, obj, memory)
        except InvalidJobError as error:
            return await self._refuse(obj, obj, written, str(error))
        except (NotFoundError, NamespaceTerminatingError):
            # The job was deleted meanwhile, or is about to be; its event is on the way.
            return Result()
        except ConflictError:
            # Somebody else has changed the job or a child meanwhile: a normal day.
            return Result(requeue=True)

    async def _advance(self, job: Job, obj: JobObject, memory: Memory) -> Result:
        dialect = self.kind.dialect_of(obj)
        if job.status.foreign and not memory.taken_over:
            await self.executor.take_over(job, dialect.selector(job))
            memory.taken_over = True
            # The stores have to show what was labelled before anything is decided.
            return Result(requeue_after_s=0)
        turn = self._turn(job, obj, memory)
        planned = turn.planned
        current = await self._write_down(turn)
        self._tell(job, obj, planned.notes)
        if job.reporting.tells_pods and planned.status.phase in _AT_WORK:
            self._tell(job, obj, memory.told.troubles(self.pods.owned_by(job.uid)))
        await self.executor.remove(job, obj, planned)
        await self.executor.force_out(job, obj, planned)
        if planned.expired:
            await self.executor.expire(job, obj)
            return Result()
        try:
            return await self._bring_about(turn, current)
        except InvalidError as error:
            # The template is the user's, so what the server refuses in it is the user's to mend.
            return await self._refuse(obj, current, planned.status, f"spec: {error}")

    def _turn(self, job: Job, obj: JobObject, memory: Memory) -> Turn:
        """Decide what is to be done about a job now."""
        now = self.clock.now()
        children = Children(
            self.pods.owned_by(job.uid),
            self.services.owned_by(job.uid),
            {r: store.owned_by(job.uid) for r, store in self.companions.items()},
            memory.blocked,
        )
        draft = self.elastic.draft(job, children) if self.elastic else None
        drafted = with_draft(job, draft) if draft else job
        renderer = Renderer(drafted, self.kind.dialect_of(obj))
        observed = observe(drafted, children, now)
        desired = renderer.desired(observed, launches=draft is None or draft.launches)
        planned = plan(drafted, observed, desired, now, self.policy)
        planned = self._debounced(job, draft.beside(planned) if draft else planned, memory)
        return Turn(job, obj, memory, renderer, planned, draft)

    async def _write_down(self, turn: Turn) -> Object:
        """Write the statuses, and return the job as it is then."""
        job, obj, planned = turn.job, turn.obj, turn.planned
        if self.elastic and turn.draft:
            # What a scaler has come to is told before the job forgets that it was about it.
            await self.elastic.answer(job, turn.draft, finished=True)
        current: Object = obj
        if planned.status != job.status:
            current = await self._write_status(obj, obj, job.status, planned.status)
            turn.memory.status_written_s = self.clock.monotonic()
            self.figures.wrote(job, obj.metadata, planned.status, self.clock.now())
        if self.elastic and turn.draft:
            await self.elastic.answer(job, turn.draft, finished=False)
        return current

    async def _bring_about(self, turn: Turn, current: Object) -> Result:
        """Make and change what is planned, and return when to look again."""
        job, obj, planned, memory = turn.job, turn.obj, turn.planned, turn.memory
        if planned.pods and not memory.secrets.made:
            wait_s = await self.executor.make_secrets(job, turn.renderer, memory.secrets)
            if wait_s:
                return Result(requeue_after_s=wait_s)
        created = await self.executor.make(job, obj, planned, turn.renderer)
        if job.reporting.tells_pods:
            self._tell(job, obj, memory.told.refusals(created.refused))
        await self.executor.change(job, planned, turn.renderer)
        if self.elastic and turn.draft:
            self.elastic.want(job.key, turn.draft)
        if job.spec_patch and (planned.pods or planned.status.phase is JobPhase.CREATING):
            await self.executor.write_spec(current, self.kind.resource, job.spec_patch)
        return _next(planned, created, memory)

    async def _refuse(
        self, obj: JobObject, current: Object, written: JobStatus, reason: str
    ) -> Result:
        """Write down why the job cannot be; the next change of its spec revives it."""
        resource = self.kind.resource
        new, notes = status.invalid(
            written, resource.kind, obj.metadata.generation or 0, reason, self.clock.now()
        )
        await self._write_status(obj, current, written, new)
        self.figures.stated(obj.key.namespace, written, new)
        for note in notes:
            self.executor.recorder.record(
                resource, obj.metadata, note.type, note.reason, note.message
            )
        return Result()

    def _tell(self, job: Job, obj: JobObject, notes: Iterable[Note]) -> None:
        for note in notes:
            self.executor.tell(job, obj, note)

    async def _write_status(
        self, obj: JobObject, current: Object, old: JobStatus, new: JobStatus
    ) -> Object:
        """Write the status; ``current`` is the job as our last write has left it."""
        dialect = self.kind.dialect_of(obj)
        # Of a first status all is written, also what says no more than that there is nothing.
        before = {} if old.phase is JobPhase.NEW else dialect.write_status(old)
        return await self.executor.write_status(
            current, self.kind.resource, before, dialect.write_status(new)
        )

    def _debounced(self, job: Job, planned: Plan, memory: Memory) -> Plan:
        """Hold back a status in which only the numbers of replicas differ from the last one.

        A job of 1,000 replicas would write 1,000 of them while it starts.
        """
        only_counts = job.status != planned.status and job.status == attrs.evolve(
            planned.status,
            replica_statuses=job.status.replica_statuses,
            conditions=_without_progress(job, planned.status),
        )
        interval_s = min(max(job.size / COUNTS_PER_S, 1.0), COUNTS_INTERVAL_S)
        if any(condition.type in job.reporting.progress for condition in job.status.conditions):
            # Of a job that scales: what matters of workers that come and go is more than counts.
            interval_s = COUNTS_INTERVAL_S
        wait_s = memory.status_written_s + interval_s - self.clock.monotonic()
        if not only_counts or wait_s <= 0:
            return planned
        wake_s = min(planned.wake_after_s or wait_s, wait_s)
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
        if obj is not None and memory is None:
            memory = self._memories[key] = Memory(obj.metadata.uid)
        return memory


def _without_progress(job: Job, new: JobStatus) -> tuple[Condition, ...]:
    """Return the new conditions without those that only say how far a job has come."""
    known = {condition.type for condition in job.status.conditions}
    minor = job.reporting.progress
    return tuple(c for c in new.conditions if c.type in known or c.type not in minor)


def _next(planned: Plan, created: Created, memory: Memory) -> Result:
    """Return when to look again, and remember what could not be created."""
    changed = created.blocked != memory.blocked
    memory.blocked = created.blocked
    if changed:
        # The status is to say so, and that is for the next plan.
        return Result(requeue_after_s=0)
    if created.blocked:
        return Result(requeue_after_s=BLOCKED_RETRY_S)
    return Result(requeue_after_s=planned.wake_after_s)
