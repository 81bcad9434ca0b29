"""The workers of jobs that scale: gathers what decisions need, and does what they ask for.

It waits for no launcher: what is to be done inside one is an errand, whose end wakes the job.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.elastic import LAUNCHER, SCALE_INS, WORKER, Elasticity, Roster, Scaler, ScalerObject
from dlctl.api.job import Job, Replica
from dlctl.api.meta import (
    MANAGED_BY,
    MANAGED_BY_LABEL,
    PODS,
    Object,
    ObjectKey,
    Resource,
    owner_reference,
)
from dlctl.api.nodes import Node
from dlctl.api.pods import Pod
from dlctl.api.status import JobPhase
from dlctl.clock import Clock
from dlctl.dialects.elastic import scalers
from dlctl.frameworks.elastic.job import TrainingJob
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.kube.errors import NotFoundError
from dlctl.reconcilers.adoption import is_controlled_by, label_patch
from dlctl.reconcilers.diff import merge_patch
from dlctl.reconcilers.elastic import requests
from dlctl.reconcilers.elastic.draft import Draft, ScalerChange
from dlctl.reconcilers.elastic.errands import Errand, LetGo
from dlctl.reconcilers.elastic.roster import initial
from dlctl.reconcilers.elastic.step import staffed, step
from dlctl.reconcilers.elastic.view import ElasticPolicy, View
from dlctl.reconcilers.errands import Errands
from dlctl.reconcilers.events import EventRecorder
from dlctl.reconcilers.expectations import Expectations
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.slices import decided

# The index of unfinished scalers by the job that they are for.
BY_JOB: Final = "job"
# The index of nodes, and its one value: that of nodes which are about to go.
GOING: Final = "going"
_POLL_S: Final = 0.5
# Between two looks whether the launcher has let go; nothing in it tells when it has.
_LOOK_S: Final = 0.25
# Before a second look at what was not in use: a launcher may be about to dial the next worker.
_CONFIRM_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 10.0


@attrs.define(eq=False)
class Elastic:
    """Keeps the rosters of one kind of jobs, and answers their scalers."""

    stores: Mapping[Resource, Store[ScalerObject]]
    errands: Errands[ObjectKey, Errand]
    client: Client
    expectations: Expectations
    recorder: EventRecorder
    clock: Clock
    policy: ElasticPolicy = attrs.field(factory=ElasticPolicy)
    # Indexed by whether they are about to go.
    nodes: Store[Node] | None = None

    async def draft(self, job: Job, children: Children, size: int) -> Draft:
        """Decide on the roster of a job now; of a large one (``size`` pods), beside the loop."""
        now = self.clock.now()
        asked = job.count(WORKER)
        roster = job.status.roster or initial(asked)
        manned = staffed(job, roster)
        view = View(
            manned,
            await decided(size, observe, manned, children, now),
            roster,
            _elasticity(job),
            now.replace(microsecond=0),
            asked,
            TrainingJob(job).slots,
            self.policy,
            scalers=list(self._scalers(job)),
            decided=list(self._decided(roster)),
            outcomes=self.errands.outcomes(job.key),
            doomed=self._doomed(),
            files=lambda hosts: _files(job, roster, hosts),
        )
        return await decided(size, step, view)

    async def answer(self, job: Job, draft: Draft, *, finished: bool) -> None:
        """Write down what scalers are told: those that are finished, or the others.

        :raises ConflictError: if one is not as the stores have it.
        """
        for change in draft.scalers.values():
            if change.status.phase.finished is finished:
                await self._answer(job, change)

    def want(self, key: ObjectKey, draft: Draft) -> None:
        """Have done in the launcher what is wanted there now."""
        outcomes = self.errands.outcomes(key)
        self.errands.want(key, draft.wanted)
        for errand in draft.again:
            if errand in outcomes:
                pause_s = _pause_s(errand, outcomes[errand].tries)
                self.errands.retry(key, errand, after_s=pause_s)

    def _scalers(self, job: Job) -> Iterator[Scaler]:
        """Yield the unfinished scalers of a job in order of creation, the oldest first."""
        found = [
            requests.read(obj, resource)
            for resource, store in self.stores.items()
            for obj in store.indexed(BY_JOB, str(job.key))
            if not obj.metadata.terminating and not _is_anothers(obj, job)
        ]
        yield from sorted(found, key=lambda one: (one.created, one.full_name))

    def _decided(self, roster: Roster) -> Iterator[Scaler]:
        """Yield the scaler of the change under way, if it has its result already."""
        change = roster.scaling
        kind, _, name = change.scaler.partition(":") if change else ("", "", "")
        namespace, _, name = name.partition("/")
        for resource, store in self.stores.items():
            obj = store.get(ObjectKey(namespace, name)) if resource.kind == kind else None
            if change and obj and obj.metadata.uid == change.uid:
                found = requests.read(obj, resource)
                if found.status.phase.finished:
                    yield found

    async def readopt(self, job: Job, pods: Iterable[Pod]) -> bool:
        """Label pods of the job that are in use and have lost our label; tell whether any had.

        The store does not show them, so each that is missing is looked up by its name, before it
        is taken for one that was deleted.
        """
        roster, running = job.status.roster, job.status.phase is JobPhase.RUNNING
        if not running or roster is None or not roster.hosts or job.run_policy.suspended:
            return False
        shown = {pod.metadata.name for pod in pods}
        used = set(roster.hosts) - roster.spent - roster.leaving
        replicas = [Replica(LAUNCHER, 0), *(Replica(WORKER, index) for index in sorted(used))]
        names = [job.child_name(replica) for replica in replicas]
        return any([await self._readopted(job, name) for name in names if name not in shown])

    async def _readopted(self, job: Job, name: str) -> bool:
        key = ObjectKey(job.key.namespace, name)
        try:
            there = await self.client.get(PODS, key, Object)
        except NotFoundError:
            return False
        if not is_controlled_by(there, job.uid) or there.metadata.terminating:
            return False
        if there.metadata.label(MANAGED_BY_LABEL) != MANAGED_BY:
            patch = label_patch(key, there.metadata.resource_version)
            there = await self.client.patch(PODS, key, patch, Object)
        self.expectations.wrote(job.uid, PODS, there.metadata.resource_version)
        return True

    async def _answer(self, job: Job, change: ScalerChange) -> None:
        scaler = change.scaler
        obj: Object | None = self.stores[scaler.resource].get(scaler.key)
        if obj is None or obj.metadata.uid != scaler.uid:
            return
        if not obj.metadata.owner_references:
            owner = owner_reference(job.resource, name=job.key.name, uid=job.uid)
            obj = await self._patch(job, scaler, obj, {"metadata": {"ownerReferences": [owner]}})
        old = scalers.write_status(scaler.status, scaler.resource)
        first = not scaler.status.conditions
        new = scalers.write_status(change.status, scaler.resource)
        if patch := merge_patch({} if first else old, new):
            await self._patch(job, scaler, obj, {"status": patch}, subresource="status")
        if change.note is not None:
            note = change.note
            self.recorder.record(
                scaler.resource, obj.metadata, note.type, note.reason, note.message
            )

    async def _patch(
        self, job: Job, scaler: Scaler, obj: Object, body: dict[str, Any], subresource: str = ""
    ) -> Object:
        version = {"resourceVersion": obj.metadata.resource_version}
        body = {**body, "metadata": {**body.get("metadata", {}), **version}}
        resource = scaler.resource
        patched = await self.client.patch(
            resource, scaler.key, body, Object, subresource=subresource
        )
        self.expectations.wrote(job.uid, resource, patched.metadata.resource_version)
        return patched

    def _doomed(self) -> frozenset[str]:
        going = self.nodes.indexed(GOING, GOING) if self.nodes else ()
        return frozenset(node.metadata.name for node in going)


def job_of(obj: ScalerObject) -> ObjectKey | None:
    """Return which job a scaler is for, if it says so."""
    name = requests.read(obj, SCALE_INS).job
    return ObjectKey(obj.metadata.namespace or "", name) if name else None


def by_job(obj: ScalerObject) -> Iterator[str]:
    """Yield what stores index scalers by: none, once it is finished."""
    scaler = requests.read(obj, SCALE_INS)
    if scaler.job and not scaler.status.phase.finished:
        yield str(ObjectKey(obj.metadata.namespace or "", scaler.job))


def _is_anothers(obj: ScalerObject, job: Job) -> bool:
    """Tell whether a scaler belongs to a job of before that had the same name: it goes with it."""
    owners = obj.metadata.owner_references or ()
    same = (o for o in owners if (o.group, o.kind) == (job.resource.group, job.resource.kind))
    return any(owner.uid != job.uid for owner in same)


def _elasticity(job: Job) -> Elasticity:
    if job.elasticity is None:
        raise LookupError(f"{job.key} does not scale")
    return job.elasticity


def _files(job: Job, roster: Roster, hosts: Iterable[int]) -> Mapping[str, str]:
    listed = attrs.evolve(roster, hosts=tuple(hosts))
    return TrainingJob(staffed(job, listed)).host_files()


def _pause_s(errand: Errand, tries: int) -> float:
    if isinstance(errand, LetGo):
        return _CONFIRM_S if errand.confirms else _LOOK_S
    return float(min(_POLL_S * 2 ** min(tries - 1, 10), _LONGEST_PAUSE_S))
