"""Writes the children of a job: the plan's deletions, creations and updates."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import BATCH_JOBS, PODS, SERVICES, Object, ObjectKey, Resource
from dlctl.api.objects.dependents import APPLIED_HASH
from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS
from dlctl.api.objects.pods import Pod
from dlctl.controller.object_writer import MAX_PARALLEL, ObjectWriter
from dlctl.durations import shortest_wait
from dlctl.kube.errors import ApiError, RequestError
from dlctl.reconcilers.applying.reconcile_context import ReconcileContext
from dlctl.reconcilers.children import secrets
from dlctl.reconcilers.children.collection_deletion import CollectionDeletion
from dlctl.reconcilers.children.creation import Child, CreateResult, Creator
from dlctl.reconcilers.children.dependents import update_patch
from dlctl.reconcilers.children.dry_runs import rejected_by_dry_run
from dlctl.reconcilers.children.rejection import Rejection, rejection_of
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.children.scheduling_gates import ungate_patch
from dlctl.reconcilers.children.secrets import SecretState
from dlctl.reconcilers.content_errors import Step, wrap_content_errors
from dlctl.reconcilers.kueue.finalizer import release_patch
from dlctl.reconcilers.launcher_job import manifests
from dlctl.reconcilers.launcher_job.next_write import LauncherJobAction, LauncherJobWrite
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.recreation_backoff import RecreationBackoff
from dlctl.tasks import map_all

logger = logging.getLogger(__name__)

T = TypeVar("T")


@attrs.frozen
class ChildWriter:
    """Writes pods, services and dependents; stateless between calls."""

    writer: ObjectWriter

    async def delete(self, job: Job, plan: Plan, deleted: list[tuple[Resource, Object]]) -> None:
        """Delete the plan's children; those that are already gone are ignored.

        Where the server does not delete a collection in full, its children are deleted singly. They
        are added to ``deleted``, also if it raises or is cancelled later.

        :raises ConflictError: if another object has the name of one.
        """

        async def delete_collection(collection: CollectionDeletion) -> Sequence[Object]:
            if not self.writer.may_delete_collections:
                return collection.children
            try:
                await self.writer.delete_collection(
                    job.uid, collection.resource, collection.children, **collection.options
                )
            except RequestError as error:
                logger.info("falling back to single deletions", extra={"error": str(error)})
                return collection.children
            deleted.extend((collection.resource, child) for child in collection.children)
            return ()

        left = await map_all(delete_collection, plan.deleted_collections, limit=MAX_PARALLEL)
        targets: list[tuple[Resource, Object]] = [(PODS, pod) for pod in plan.deleted_pods]
        targets += [(SERVICES, service) for service in plan.deleted_services]
        targets += plan.dependents.deleted
        for collection, children in zip(plan.deleted_collections, left, strict=True):
            targets += [(collection.resource, child) for child in children]

        async def delete(target: tuple[Resource, Object]) -> None:
            await self.writer.delete(job.uid, *target)
            deleted.append(target)

        await _write_each(delete, targets)
        if (launcher := plan.deleted_launcher_job) is not None:
            # While the Job exists, one of its pods may exist, too.
            await self.writer.delete(job.uid, BATCH_JOBS, launcher, propagation="Foreground")
            deleted.append((BATCH_JOBS, launcher))

    async def force_delete(self, job: Job, plan: Plan, on_deleted: Callable[[Pod], None]) -> None:
        """Force-delete pods past their grace period, even if their processes still run.

        ``on_deleted`` is called for each, to report processes that may still run.

        :raises ConflictError: if another pod has the name of one.
        """

        async def delete(pod: Pod) -> None:
            if await self.writer.force_delete(job.uid, PODS, pod):
                on_deleted(pod)

        await _write_each(delete, plan.force_deleted_pods)

    async def create_secrets(
        self, job: Job, renderer: Renderer, state: SecretState, now_s: float
    ) -> float:
        """Create the secrets that the job's pods mount.

        Return the seconds until the next attempt: see :func:`secrets.create_secrets`.
        """
        objects = [(c.resource, renderer.dependent(c)) for c in renderer.framework.secrets()]
        return await secrets.create_secrets(self.writer.client, job, objects, state, now_s)

    async def create(
        self, context: ReconcileContext, plan: Plan, created: dict[Resource, list[str]]
    ) -> CreateResult:
        """Create the plan's missing children; those of a small new job at once on a busy server.

        If dry runs are rejected, only the children of those replicas are created. Stops, raises and
        adds to ``created`` like :meth:`Creator.create`.
        """
        job, renderer, client = context.job, context.renderer, self.writer.client
        doubtful = await rejected_by_dry_run(client, job, plan.dry_runs, renderer)
        children = _children(job, plan.reduced_to(doubtful) if doubtful else plan, renderer)
        # A pod that is deleted again would be an interruption of a job that runs.
        creator = Creator(self.writer, client.write_limiter.is_busy and not context.has_run)
        rejected = context.cache.rejected.by_name
        return await creator.create(job.uid, children, rejected, context.is_current, created)

    async def update(
        self, context: ReconcileContext, plan: Plan, recent: RecreationBackoff
    ) -> tuple[Mapping[str, Rejection], float | None]:
        """Update dependents, pods and Jobs; return the updates that the server rejects, by name.

        One that others undo again and again has to wait; return also how many seconds.

        :raises NotFoundError: if one is gone.
        :raises ConflictError: if one has changed since the stores showed it.
        """
        job = context.job
        rejections: dict[str, Rejection] = {}
        wait_s: float | None = None
        for update in list(_updates(plan, context.renderer)):
            resource, metadata = update.resource, update.existing.metadata
            if wait := recent.waits(job.uid, [(resource, metadata.uid)], update.purpose):
                wait_s = shortest_wait(wait_s, *(one.left_s for one in wait.values()))
                continue
            try:
                await self.writer.patch(
                    job.uid, resource, update.existing, update.body, subresource=update.subresource
                )
            except ApiError as error:
                if (rejection := rejection_of(resource, metadata.name, error)) is None:
                    raise
                message = f"the update of {rejection.message}"
                rejections[metadata.name] = attrs.evolve(rejection, message=message)
                continue
            recent.record(job.uid, resource, [metadata.uid], update.purpose)
        return rejections, wait_s


@attrs.frozen
class _Update:
    """A patch of an object as read: a gate removed meanwhile must not come back."""

    resource: Resource
    existing: Object
    body: ReadOnlyJSON
    # The same for updates that differ in nothing but times.
    purpose: str
    subresource: str = ""


async def _write_each(write: Callable[[T], Awaitable[None]], targets: Iterable[T]) -> None:
    """Write each target; after a failure, those on their way finish, and no other one starts.

    :raises RequestError: the first failure.
    """
    failures: list[RequestError] = []

    async def attempt(target: T) -> None:
        if failures:
            return
        try:
            await write(target)
        except RequestError as error:
            failures.append(error)

    await map_all(attempt, targets, limit=MAX_PARALLEL)
    if failures:
        raise failures[0]


def _updates(plan: Plan, renderer: Renderer) -> Iterator[_Update]:
    for pod in plan.kueue_held_pods:
        yield _Update(PODS, pod, release_patch(pod), "release")
    for service in plan.patched_services:
        publishes = renderer.dialect.publishes_not_ready_addresses(renderer.job)
        body: ReadOnlyJSON = {"spec": {"publishNotReadyAddresses": publishes}}
        yield _Update(SERVICES, service, body, f"publish {publishes}")
    for dependent, existing in plan.dependents.patched:
        with wrap_content_errors(Step.RENDERING):
            rendered = renderer.dependent(dependent)
            body = update_patch(dependent, rendered, existing)
        purpose = rendered["metadata"]["annotations"][APPLIED_HASH]
        yield _Update(dependent.resource, existing, body, purpose)
    if (pod_group := plan.gang_retry.group) is not None:
        yield _Update(COSCHEDULING_POD_GROUPS, pod_group, plan.gang_retry.patch, "retry")
    for pod in plan.ungated_pods:
        yield _Update(PODS, pod, ungate_patch(pod), "ungate")
    write = plan.launcher_job
    if write is not None and write.existing is not None and not plan.deleted_launcher_job:
        body, subresource = _launcher_job_patch(write, renderer)
        yield _Update(BATCH_JOBS, write.existing, body, write.action.name, subresource)


def _launcher_job_patch(write: LauncherJobWrite, renderer: Renderer) -> tuple[ReadOnlyJSON, str]:
    template: dict[str, Any] = {}
    if write.action is LauncherJobAction.RESUME:
        with wrap_content_errors(Step.RENDERING):
            template = renderer.launcher_job(suspended=False)["spec"]["template"]
    return manifests.patch(renderer.job, write, template)


def _children(job: Job, plan: Plan, renderer: Renderer) -> Iterator[Child]:
    def child(
        resource: Resource, name: str, body: Callable[[], ReadOnlyJSON], template: str = ""
    ) -> Child:
        return Child(resource, ObjectKey(job.key.namespace, name), body, template)

    for dependent in plan.dependents.created:
        made = child(dependent.resource, dependent.name, partial(renderer.dependent, dependent))
        yield attrs.evolve(
            made, may_exist=dependent.may_exist, may_be_shared=dependent.may_be_shared
        )
    for replica in plan.services:
        yield child(SERVICES, job.service_name(replica), partial(renderer.service, replica))
    for replica in plan.pods:
        body = partial(renderer.pod, replica)
        yield child(PODS, job.child_name(replica), body, template=replica.type)
    write = plan.launcher_job
    if write is not None and write.action.creates:
        suspended = write.action is LauncherJobAction.CREATE_SUSPENDED
        launcher = partial(renderer.launcher_job, suspended=suspended)
        yield child(BATCH_JOBS, job.child_name(LAUNCHER_REPLICA), launcher)
