"""Adoption: labels children that another operator created for a job as dlctl's.

Stores contain only labelled objects. Each namespace is listed once for all jobs of a kind, and only
objects without the label are listed.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.job import CleanPodPolicy, Job
from dlctl.api.meta import (
    MANAGED_BY,
    MANAGED_BY_LABEL,
    PODS,
    SERVICES,
    UID,
    Object,
    ObjectKey,
    Resource,
)
from dlctl.api.status import JobPhase
from dlctl.clock import Clock
from dlctl.controller.expectations import Expectations
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.tasks import map_all

JSON = Mapping[str, Any]
UNLABELLED: Final = f"{MANAGED_BY_LABEL}!={MANAGED_BY}"
# A child created after its namespace was listed is found by its name, when the job creates it.
LISTING_TTL_S: Final = 30.0
PAGE_SIZE: Final = 500
MAX_PARALLEL: Final = 32


@attrs.frozen
class Orphan:
    """A child without dlctl's label, as listed."""

    resource: Resource
    key: ObjectKey
    resource_version: str


@attrs.define
class _Listing:
    """The orphans of one namespace, by the UID of the controlling job."""

    expires_s: float
    orphans: dict[UID, list[Orphan]] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Adopter:
    """Labels the children of one kind of job.

    ``transient`` are the resources of dependents that are deleted when a run ends.
    """

    client: Client
    expectations: Expectations
    clock: Clock
    transient: Collection[Resource] = ()
    _listings: dict[tuple[str, str], _Listing] = attrs.field(init=False, factory=dict)
    # Two jobs that start at once share one list.
    _lock: asyncio.Lock = attrs.field(init=False, factory=asyncio.Lock)

    async def adopt(self, job: Job, selector: str) -> bool:
        """Label the job's children that ``selector`` finds; return whether there were any.

        :raises ConflictError: if a child keeps changing.
        """
        orphans = [o for o in await self._orphans_of(job, selector) if _must_adopt(o, job)]

        async def label(orphan: Orphan) -> None:
            await self._label(job.uid, orphan)

        await map_all(label, orphans, limit=MAX_PARALLEL)
        return bool(orphans)

    async def _orphans_of(self, job: Job, selector: str) -> list[Orphan]:
        namespace = job.key.namespace
        async with self._lock:
            now = self.clock.monotonic()
            self._listings = {k: one for k, one in self._listings.items() if one.expires_s > now}
            listing = self._listings.get((namespace, selector))
            if listing is None:
                listing = _Listing(now + LISTING_TTL_S)
                for resource in (PODS, SERVICES, *self.transient):
                    of_jobs = selector if resource in (PODS, SERVICES) else ""
                    await self._list(resource, namespace, of_jobs, listing)
                self._listings[namespace, selector] = listing
        # Orphans stay in the listing, so that an interrupted attempt can be repeated.
        return listing.orphans.get(job.uid, [])

    async def _list(
        self, resource: Resource, namespace: str, selector: str, listing: _Listing
    ) -> None:
        token = ""
        while True:
            try:
                page = await self.client.list(
                    resource,
                    Object,
                    namespace=namespace,
                    label_selector=",".join(filter(None, (selector, UNLABELLED))),
                    limit=PAGE_SIZE,
                    continue_=token or None,
                )
            except NotFoundError:
                # A resource that is not installed has no objects.
                return
            for uid, orphan in _by_controller(resource, page.items):
                listing.orphans.setdefault(uid, []).append(orphan)
            token = page.continue_
            if not token:
                return

    async def _label(self, owner: UID, orphan: Orphan) -> None:
        resource, key, version = orphan.resource, orphan.key, orphan.resource_version
        try:
            patched = await self.client.patch(resource, key, label_patch(key, version), Object)
        except NotFoundError:
            return
        except ConflictError:
            try:
                existing = await self.client.get(resource, key, Object)
            except NotFoundError:
                return
            if not is_controlled_by(existing, owner):
                return
            patched = await label_child(self.client, resource, existing)
        self.expectations.expect_write(owner, resource, patched.metadata.resource_version)


async def label_child(client: Client, resource: Resource, child: Object) -> Object:
    """Label a child unless it already is labelled, and return the result.

    :raises ConflictError: if it has changed since it was read.
    :raises NotFoundError: if it is gone.
    """
    metadata = child.metadata
    if metadata.label(MANAGED_BY_LABEL) == MANAGED_BY:
        return child
    body = label_patch(metadata.key, metadata.resource_version)
    return await client.patch(resource, metadata.key, body, Object)


def label_patch(key: ObjectKey, resource_version: str) -> JSON:
    """Return the patch that labels a child if it is unchanged.

    A UID would be a worse guard: a wrong one is Invalid, like a malformed patch.
    """
    return {
        "metadata": {
            "name": key.name,
            "resourceVersion": resource_version,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY},
        }
    }


def is_controlled_by(child: Object, owner: UID) -> bool:
    controller = child.metadata.controller
    return controller is not None and controller.uid == owner


def _by_controller(resource: Resource, objects: Collection[Object]) -> Iterator[tuple[UID, Orphan]]:
    for obj in objects:
        metadata = obj.metadata
        if metadata.controller is not None:
            yield metadata.controller.uid, Orphan(resource, metadata.key, metadata.resource_version)


def _must_adopt(orphan: Orphan, job: Job) -> bool:
    """Return whether a job still needs a child, to observe or delete it."""
    ended = job.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE)
    keeps_pods = job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    return not (ended and keeps_pods and orphan.resource in (PODS, SERVICES))
