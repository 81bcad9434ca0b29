"""Carrying out a plan: status first, then deletions, then creations, with an event for each fact.

Every step can be cut off and repeated: the next plan begins from what the server then holds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import attrs

from dlctl.api.gangs import COSCHEDULING_POD_GROUPS
from dlctl.api.job import Job, JobObject
from dlctl.api.meta import PODS, SERVICES, Object, ObjectKey, Resource
from dlctl.api.pods import Pod
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.expectations import Expectations
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, NotFoundError
from dlctl.reconcilers.children import kueue, secrets
from dlctl.reconcilers.children.creation import (
    Child,
    CreateResult,
    Creator,
    Rejection,
    rejection_of,
)
from dlctl.reconcilers.children.dependents import update_patch
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.children.scheduling_gates import ungate_patch
from dlctl.reconcilers.children.secrets import SecretState
from dlctl.reconcilers.content_errors import wrap_content_errors
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.merge_patch import merge_patch
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.pod_events import batched
from dlctl.tasks import map_all

JSON = Mapping[str, Any]
MAX_PARALLEL: Final = 32

SUCCESSFUL_CREATE: Final = "SuccessfulCreate"
SUCCESSFUL_DELETE: Final = "SuccessfulDelete"
OTHER_SCHEDULER: Final = "SetPodTemplateSchedulerName"
POD_FORCE_DELETED: Final = "PodForceDeleted"


class JobGoneError(DlctlError):
    """The job itself is not there any more; a child that is missing is another matter."""


@attrs.frozen
class Executor:
    """Writes what plans ask for; holds nothing of a job between two calls."""

    client: Client
    expectations: Expectations
    recorder: EventRecorder

    async def patch_status(
        self, job: JobObject, resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> JobObject:
        """Patch what differs between two statuses; return the job as it is then.

        Both are as we write them, so what another operator left there stays as it is.

        :raises ConflictError: if the job is not as it was read, or another one under its name.
        :raises JobGoneError: if it is gone.
        """
        patch = merge_patch(old, new)
        if not patch:
            return job
        return await self._patch(job, resource, {"status": patch}, subresource="status")

    async def patch_spec(
        self, job: JobObject, resource: Resource, patch: Mapping[str, Any]
    ) -> JobObject:
        """Merge into the user's spec what belongs there: see :attr:`Job.spec_patch`.

        It returns and raises as :meth:`write_status` does.
        """
        return await self._patch(job, resource, {"spec": patch})

    async def refetch(self, job: JobObject, resource: Resource) -> JobObject:
        """Return a job as the server has it.

        :raises JobGoneError: if it is gone.
        """
        # A list of one: the controller's role lists jobs, and does not get them.
        name, namespace = job.metadata.name, job.key.namespace
        page = await self.client.list(
            resource, JobObject, namespace=namespace, field_selector=f"metadata.name={name}"
        )
        if not page.items:
            raise JobGoneError(f"{resource.group_resource} {job.key} is gone")
        return page.items[0]

    async def delete(self, job: Job, obj: Object, plan: Plan) -> None:
        """Ask for the deletion of what the plan removes; what is gone already is as well.

        :raises ConflictError: if the name of one is another object's by now.
        """
        targets: list[tuple[Resource, Object]] = [(PODS, pod) for pod in plan.deleted_pods]
        targets += [(SERVICES, service) for service in plan.deleted_services]
        targets += plan.dependents.deleted

        async def delete(target: tuple[Resource, Object]) -> None:
            resource, obj = target
            uid = obj.metadata.uid
            # A conflict says that another object has the name, or that the server is at odds with
            # itself. The store will show the one; only trying again helps with the other.
            await self.client.delete(resource, obj.key, uid=uid)
            self.expectations.expect_deletion(job.uid, resource, uid)

        await map_all(delete, targets, limit=MAX_PARALLEL)
        if job.messages.emits_pod_events:
            self._record_deletions(job, obj, plan)

    async def force_delete(self, job: Job, obj: Object, plan: Plan) -> None:
        """Delete the pods that overstay, whether or not their processes have ended.

        :raises ConflictError: if the name of one is another pod's by now.
        """

        async def delete(pod: Pod) -> None:
            uid = pod.metadata.uid
            deleted = await self.client.delete(PODS, pod.key, uid=uid, grace_period_s=0)
            if deleted is None:
                # It has gone by itself.
                return
            # Gone, or without grace where finalizers keep it: the store is to show which.
            self.expectations.expect_write(job.uid, PODS, deleted.metadata.resource_version)
            # One each, as many as a node has: users must hear of every process that may still run.
            self.record_event(
                job, obj, EventNote("Warning", POD_FORCE_DELETED, _force_deleted_message(pod))
            )

        await map_all(delete, plan.force_deleted_pods, limit=MAX_PARALLEL)

    async def delete_job(self, job: Job, obj: Object) -> None:
        """Delete a job whose time after its end is over; its children go with it.

        :raises ConflictError: if it has changed since it was read: perhaps it is to stay now.
        """
        await self.client.delete(
            job.resource,
            obj.key,
            uid=obj.metadata.uid,
            resource_version=obj.metadata.resource_version,
            propagation="Background",
        )
        message = f"Deleted job: {job.key.name}"
        self.record_event(
            job, obj, EventNote("Normal", job.messages.ttl_deletion_reason(job), message)
        )

    async def create_secrets(self, job: Job, renderer: Renderer, state: SecretState) -> float:
        """Make what pods of the job mount and nobody may read; see :func:`secrets.make`."""
        objects = [(c.resource, renderer.dependent(c)) for c in renderer.framework.secrets()]
        return await secrets.create_secrets(self.client, job, objects, state)

    async def create(self, job: Job, obj: Object, plan: Plan, renderer: Renderer) -> CreateResult:
        """Create what the plan lacks, services before the pods that look them up.

        It raises as :meth:`Creator.create` does.
        """
        creator = Creator(self.client, self.expectations)
        created = await creator.create(job.uid, _children(job, plan, renderer))
        for resource in (SERVICES, PODS):
            names, reason = created.names.get(resource, ()), SUCCESSFUL_CREATE
            if job.messages.emits_child_kinds:
                reason += resource.kind
            for message in batched("Created", resource.kind, names):
                self.record_event(job, obj, EventNote("Normal", reason, message))
        if PODS in created.names:
            for warning in job.warnings:
                self.record_event(job, obj, EventNote("Warning", warning.reason, warning.message))
            if types := renderer.gang.other_scheduler_types:
                self.record_event(
                    job,
                    obj,
                    EventNote("Warning", OTHER_SCHEDULER, _other_scheduler_message(job, types)),
                )
        return created

    async def update(self, job: Job, plan: Plan, renderer: Renderer) -> Mapping[str, Rejection]:
        """Bring companions and pods that are there to what they should be.

        Return the changes that the server refuses, by the names of the children.

        :raises NotFoundError: if one is gone meanwhile.
        :raises ConflictError: if one is not as the stores have it.
        """
        patches: list[tuple[Resource, JSON]] = []
        for dependent, existing in plan.dependents.patched:
            with wrap_content_errors("rendering"):
                body = update_patch(dependent, renderer.dependent(dependent), existing)
            patches.append((dependent.resource, _with_resource_version(body, existing)))
        if (pod_group := plan.gang_retry.group) is not None:
            patches.append(
                (COSCHEDULING_POD_GROUPS, _with_resource_version(plan.gang_retry.patch, pod_group))
            )
        for pod in plan.kueue_held_pods:
            others = [f for f in pod.metadata.finalizers or () if f != kueue.FINALIZER]
            metadata = {"name": pod.metadata.name, "finalizers": others or None}
            await self._patch_child(job, PODS, _with_resource_version({"metadata": metadata}, pod))
        patches += [(PODS, ungate_patch(pod)) for pod in plan.ungated_pods]
        rejections: dict[str, Rejection] = {}
        for resource, patch in patches:
            try:
                await self._patch_child(job, resource, patch)
            except ApiError as error:
                name = patch["metadata"]["name"]
                if (rejection := rejection_of(resource, name, error)) is None:
                    raise
                rejections[name] = attrs.evolve(
                    rejection, message=f"the change of {rejection.message}"
                )
        return rejections

    def _record_deletions(self, job: Job, obj: Object, plan: Plan) -> None:
        deleted = {PODS: plan.deleted_pods, SERVICES: plan.deleted_services}
        for resource, children in deleted.items():
            names = [child.metadata.name for child in children]
            for message in batched("Deleted", resource.kind, names):
                reason = SUCCESSFUL_DELETE + resource.kind
                self.record_event(job, obj, EventNote("Normal", reason, message))

    async def _patch_child(self, job: Job, resource: Resource, body: Mapping[str, Any]) -> None:
        key = ObjectKey(job.key.namespace, body["metadata"]["name"])
        patched = await self.client.patch(resource, key, body, Object)
        self.expectations.expect_write(job.uid, resource, patched.metadata.resource_version)

    def record_event(self, job: Job, obj: Object, note: EventNote) -> None:
        """Tell users of a job what has become of it."""
        source = job.messages.event_source
        self.recorder.record(
            job.resource, obj.metadata, note.type, note.reason, note.message, source=source
        )

    async def _patch(
        self, job: JobObject, resource: Resource, body: Mapping[str, Any], *, subresource: str = ""
    ) -> JobObject:
        # Without the version the patch would land on whatever job has the name by now. The UID
        # is no guard: the server ignores metadata in patches of the status.
        body = {"metadata": {"resourceVersion": job.metadata.resource_version}, **body}
        try:
            patched = await self.client.patch(
                resource, job.key, body, JobObject, subresource=subresource
            )
        except NotFoundError as error:
            raise JobGoneError(str(error)) from error
        self.expectations.expect_write(
            job.metadata.uid, resource, patched.metadata.resource_version
        )
        return patched


def _children(job: Job, plan: Plan, renderer: Renderer) -> Iterator[Child]:
    def child(resource: Resource, name: str, render: Callable[[Any], JSON], what: Any) -> Child:
        return Child(resource, ObjectKey(job.key.namespace, name), partial(render, what))

    for dependent in plan.dependents.created:
        yield child(dependent.resource, dependent.name, renderer.dependent, dependent)
    for replica in plan.services:
        yield child(SERVICES, job.child_name(replica), renderer.service, replica)
    for replica in plan.pods:
        yield child(PODS, job.child_name(replica), renderer.pod, replica)


def _with_resource_version(body: Mapping[str, Any], existing: Object) -> Mapping[str, Any]:
    # A gate that somebody else has taken away meanwhile cannot be put back, and the name may be
    # another object's by now: both are conflicts, and not the fault of the job.
    version = {"resourceVersion": existing.metadata.resource_version}
    return {**body, "metadata": {**body["metadata"], **version}}


def _other_scheduler_message(job: Job, types: Iterable[str]) -> str:
    return (
        f"the pods of {', '.join(types)} name another scheduler than that of gangs, "
        f"{job.defaults.gang_scheduler_name}: it stays, and they may be started without the rest"
    )


def _force_deleted_message(pod: Pod) -> str:
    node = (pod.spec.node_name if pod.spec else None) or "unknown"
    return (
        f"Deleted pod {pod.metadata.name} without a word from its node {node}: "
        "if the node is merely cut off, the old process may still run there"
    )
