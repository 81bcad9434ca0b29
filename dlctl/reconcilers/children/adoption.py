"""Adoption: labels children of a job that lack dlctl's label, mostly those of another operator.

Stores contain only labelled objects. Each namespace is listed once for all jobs of a kind, and
again for each retry of an adopted launcher; only objects without the label are listed.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, WORKER, Job, Replica
from dlctl.api.meta import (
    BATCH_JOBS,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    PODS,
    SERVICES,
    UID,
    Object,
    ObjectKey,
    ObjectMeta,
    Resource,
)
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import APPLIED_HASH, DependentObject
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import JobPhase
from dlctl.clock import Clock
from dlctl.controller.object_writer import MAX_PARALLEL, ObjectWriter, patch_if_unchanged
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.kube.queries import PAGE_SIZE
from dlctl.reconcilers.children.dependents import ExistingDependents, applied_hash
from dlctl.tasks import map_all

_CONTROLLER_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_LABELS: Final = {MANAGED_BY_LABEL: MANAGED_BY}
_WITHOUT_HASH: Final = {"metadata": {"annotations": {APPLIED_HASH: None}}}
UNLABELLED: Final = f"{MANAGED_BY_LABEL}!={MANAGED_BY}"
# A child created after its namespace was listed is found by its name, when the job creates it.
LISTING_TTL_S: Final = 30.0
# The maximum number of missing pods that are looked up at a time.
_MAX_LOOKUPS: Final = 16


@attrs.frozen
class Orphan:
    """A child without dlctl's label, as listed."""

    resource: Resource
    # Its name and version alone: thousands may be listed.
    child: Object


@attrs.define
class _NamespaceOrphans:
    """The orphans of one namespace, by the UID of the controlling job; None before the list."""

    expires_s: float
    orphans: dict[UID, list[Orphan]] | None = None
    # Jobs that start at once share one list, and wait for none of another namespace.
    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)

    def is_current(self, now_s: float) -> bool:
        """Return whether it is not too old, or is still being listed."""
        return self.expires_s > now_s or self.lock.locked()


@attrs.define(eq=False)
class Adopter:
    """Labels the children of one kind of job.

    ``resources`` are those of children other than pods and services that a job must know before
    it is planned; it finds others by their names.
    """

    writer: ObjectWriter
    clock: Clock
    resources: Collection[Resource] = ()
    _listings: dict[tuple[str, str], _NamespaceOrphans] = attrs.field(init=False, factory=dict)

    async def adopt(self, job: Job, selector: str) -> bool:
        """Label the job's children that ``selector`` finds; return whether there were any.

        :raises ConflictError: if a child keeps changing.
        """
        by_owner = await self._orphans(job.key.namespace, selector)
        orphans = by_owner.get(job.uid, [])
        # The pods of its Jobs come first: once a Job has the label, nothing finds them.
        of_jobs = [
            pod
            for orphan in orphans
            if orphan.resource == BATCH_JOBS
            for pod in by_owner.get(orphan.child.metadata.uid, [])
        ]

        async def label(orphan: Orphan) -> None:
            await self._label(orphan, job.uid)

        adopted = [one for one in (*of_jobs, *orphans) if _must_adopt(one, job)]
        await map_all(label, [o for o in adopted if o.resource != BATCH_JOBS], limit=MAX_PARALLEL)
        await map_all(label, [o for o in adopted if o.resource == BATCH_JOBS], limit=MAX_PARALLEL)
        return bool(adopted)

    async def reset_applied(self, job: Job, dependents: ExistingDependents) -> bool:
        """Remove the hash of what dlctl applied before another operator ran the job, if it did.

        That operator may have edited these dependents: they are written once more. Return whether
        there were any.

        :raises ConflictError: if one has changed since the stores showed it.
        """
        applied = [
            (resource, one)
            for resource, found in dependents.items()
            for one in found
            if applied_hash(one) and not one.metadata.is_terminating
        ]

        async def reset(target: tuple[Resource, DependentObject]) -> None:
            with suppress(NotFoundError):
                await self.writer.patch(job.uid, *target, _WITHOUT_HASH)

        await map_all(reset, applied, limit=MAX_PARALLEL)
        return bool(applied)

    async def adopt_retries(self, job: Job, batch_job: BatchJob) -> bool:
        """Label the pods of a launcher's adopted Job; return whether there were any without.

        Its pod template lacks the label, and cannot be changed once the Job has started.
        """
        found: dict[UID, list[Orphan]] = {}
        uid = batch_job.metadata.uid
        await self._list(PODS, job.key.namespace, f"{_CONTROLLER_UID_LABEL}={uid}", found)
        pods = found.get(uid, [])
        await map_all(partial(self._label, job=job.uid), pods, limit=MAX_PARALLEL)
        return bool(pods)

    async def readopt(self, job: Job, pods: Iterable[Pod]) -> bool:
        """Label used pods of an elastic job that lost dlctl's label; return whether any has it now.

        Stores do not contain such pods, so missing ones are looked up by name before they count as
        deleted.
        """
        membership, running = job.status.membership, job.status.phase is JobPhase.RUNNING
        if not running or membership is None or not membership.hosts or job.run_policy.suspended:
            return False
        shown = {pod.metadata.name for pod in pods}
        used = set(membership.hosts) - membership.retired - membership.leaving
        replicas = [LAUNCHER_REPLICA, *(Replica(WORKER, index) for index in sorted(used))]
        names = (job.child_name(replica) for replica in replicas)
        missing = [name for name in names if name not in shown]
        return any(await map_all(partial(self._readopt_pod, job), missing, limit=_MAX_LOOKUPS))

    async def _readopt_pod(self, job: Job, name: str) -> bool:
        try:
            pod = await self.writer.client.get(PODS, ObjectKey(job.key.namespace, name), Object)
        except NotFoundError:
            return False
        if pod.metadata.controller_uid != job.uid or pod.metadata.is_terminating:
            return False
        return await label_child(self.writer, job.uid, PODS, pod)

    async def _orphans(self, namespace: str, selector: str) -> dict[UID, list[Orphan]]:
        now = self.clock.monotonic()
        self._listings = {k: one for k, one in self._listings.items() if one.is_current(now)}
        listing = self._listings.setdefault(
            (namespace, selector), _NamespaceOrphans(now + LISTING_TTL_S)
        )
        async with listing.lock:
            if listing.orphans is None:
                orphans: dict[UID, list[Orphan]] = {}
                for resource in (PODS, SERVICES, *self.resources):
                    of_jobs = selector if resource in (PODS, SERVICES) else ""
                    await self._list(resource, namespace, of_jobs, orphans)
                # They stay in the listing, so that an interrupted attempt can be repeated.
                listing.orphans = orphans
            return listing.orphans

    async def _list(
        self, resource: Resource, namespace: str, selector: str, orphans: dict[UID, list[Orphan]]
    ) -> None:
        selector = ",".join(filter(None, (selector, UNLABELLED)))
        pages = self.writer.client.pages(
            resource, Object, namespace=namespace, label_selector=selector, limit=PAGE_SIZE
        )
        # A resource that is not installed has no objects.
        with suppress(NotFoundError):
            async for page in pages:
                for uid, orphan in _by_controller(resource, page.items):
                    orphans.setdefault(uid, []).append(orphan)

    async def _label(self, orphan: Orphan, job: UID) -> None:
        with suppress(NotFoundError):
            try:
                await label_child(self.writer, job, orphan.resource, orphan.child)
            except ConflictError:
                child = await self.writer.client.get(orphan.resource, orphan.child.key, Object)
                if child.metadata.uid == orphan.child.metadata.uid:
                    await label_child(self.writer, job, orphan.resource, child)


async def label_child(writer: ObjectWriter, owner: UID, resource: Resource, child: Object) -> bool:
    """Label a child unless it already is labelled; the owner waits until the stores show it.

    Return False if they never will, because a webhook or policy removes the label.

    :raises ConflictError: if it has changed since it was read.
    :raises NotFoundError: if it is gone.
    """
    if not _is_labelled(child):
        body = {"metadata": {"labels": _LABELS}}
        child = await patch_if_unchanged(writer.client, resource, child, body)
    is_labelled = _is_labelled(child)
    if is_labelled:
        writer.expectations.expect_write(owner, resource, child.metadata.resource_version)
    return is_labelled


def _is_labelled(child: Object) -> bool:
    return child.metadata.label(MANAGED_BY_LABEL) == MANAGED_BY


def _by_controller(resource: Resource, objects: Collection[Object]) -> Iterator[tuple[UID, Orphan]]:
    for obj in objects:
        metadata = obj.metadata
        if (controller := metadata.controller_uid) is not None:
            identity = ObjectMeta(
                metadata.name,
                metadata.namespace,
                metadata.uid,
                resource_version=metadata.resource_version,
            )
            yield controller, Orphan(resource, Object(identity))


def _must_adopt(orphan: Orphan, job: Job) -> bool:
    """Return whether a job still needs a child, to observe or delete it."""
    ended = job.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE)
    keeps_pods = job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    return not (ended and keeps_pods and orphan.resource in (PODS, SERVICES))
