"""Writes the job object: its status, its spec's runtime fields, and its deletion."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

import attrs
import msgspec

from dlctl.api.job import Job
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import Object
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.controller.object_writer import ObjectWriter
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.dialects.status import restarts_codec
from dlctl.errors import DlctlError
from dlctl.kube.errors import ApiError, NotFoundError, RequestError, names_missing_object
from dlctl.kube.flowcontrol.write_limiter import write_flow
from dlctl.kube.merge_diff import merge_diff
from dlctl.reconcilers.children.rejection import rejection_of
from dlctl.reconcilers.content_errors import Step, wrap_content_errors
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.crd_check import CRDCheck
from dlctl.reconcilers.job.status_rejection import StatusRejectedError
from dlctl.reconcilers.job.status_write import StatusWrite


class StatusSupersededError(DlctlError):
    """The job has changed while its new status waited: the next reconcile, now due, writes it."""


class JobGoneError(DlctlError):
    """The job itself is gone, as opposed to a child."""


@attrs.frozen
class JobWriter:
    """Writes jobs of one kind."""

    kind: Kind
    writer: ObjectWriter
    crd: CRDCheck

    async def patch_status(
        self, obj: DecodedObject, write: StatusWrite, cache: JobCache
    ) -> DecodedObject | None:
        """Patch the status of a job, and return the updated job; None if nothing differs.

        Fields that another operator wrote are kept.

        :raises ConflictError: if the job has changed, or another one has its name.
        :raises JobGoneError: if it is gone.
        :raises StatusDroppedError: if the server has dropped a part of the status.
        :raises StatusRejectedError: if the server rejects this status.
        :raises StatusSupersededError: if the job has changed while others wrote; at most once
            before each write, so that a job that changes all the time is written as well.
        """
        old, new = write.job.status, write.status
        with wrap_content_errors(Step.WRITING_STATUS):
            # A first status is written in full, including empty fields.
            before = {} if old.phase is JobPhase.NEW else obj.dialect.write_status(old)
            before = restarts_codec.as_stored(before, obj.status)
            wire = obj.dialect.write_status(new)
        patch = merge_diff(before, wire)
        if not patch:
            return None
        flow = write_flow.get()

        def body() -> ReadOnlyJSON:
            if flow and cache.superseded_at is None and flow.is_stale():
                cache.superseded_at = flow.arrived_at
                raise StatusSupersededError(f"{self.kind.resource.kind} {obj.key} has changed")
            return {"status": patch}

        with flow.take_turn(cache.superseded_at) if flow else nullcontext():
            try:
                updated = await self._patch_status(obj, body)
            except (RequestError, asyncio.CancelledError) as error:
                if not isinstance(error, ApiError) or error.code >= 500:
                    cache.status_conflicts.record_unconfirmed_write()
                    cache.unconfirmed_write = write
                raise
        cache.superseded_at = cache.unconfirmed_write = None
        self.crd.check(wire, updated)
        cache.status_rejection.clear()
        cache.status_conflicts.record_own_write(updated.status)
        cache.last_status = new if _has_unobservable_state(new) else None
        return msgspec.structs.replace(obj, metadata=updated.metadata, status=updated.status)

    async def patch_spec(self, obj: Object, patch: ReadOnlyJSON) -> None:
        """Merge dlctl's fields into the user's spec: see :attr:`Job.spec_patch`.

        :raises ConflictError: if the job has changed, or another one has its name.
        :raises JobGoneError: if it is gone.
        """
        await self._patch(obj, {"spec": patch})

    async def delete(self, job: Job, obj: Object) -> None:
        """Delete a job whose TTL has expired, and its children with it.

        :raises ConflictError: if it has changed since it was read: its TTL may differ now.
        """
        await self.writer.client.delete(
            job.resource,
            obj.key,
            uid=obj.metadata.uid,
            resource_version=obj.metadata.resource_version,
            propagation="Background",
        )

    async def refetch(self, obj: Object) -> JobObject:
        """Return a job as stored on the server, perhaps of a later version.

        :raises JobGoneError: if it is gone or being deleted, or another one has its name.
        """
        # A list of one: the controller's role allows listing jobs, but not getting them.
        page = await self.writer.client.list(
            self.kind.resource,
            self.kind.object_type,
            namespace=obj.key.namespace,
            field_selector=f"metadata.name={obj.metadata.name}",
        )
        for found in page.items:
            if found.metadata.uid == obj.metadata.uid and not found.metadata.is_terminating:
                return found
        raise JobGoneError(f"{self.kind.resource.group_resource} {obj.key} has been deleted")

    async def _patch_status(self, obj: Object, body: Callable[[], ReadOnlyJSON]) -> JobObject:
        try:
            return await self._patch(obj, body, subresource="status")
        except ApiError as error:
            if (rejection := rejection_of(self.kind.resource, obj.metadata.name, error)) is None:
                raise
            raise StatusRejectedError(f"the status of {rejection.message}") from error

    async def _patch(
        self, obj: Object, body: ReadOnlyJSON | Callable[[], ReadOnlyJSON], *, subresource: str = ""
    ) -> JobObject:
        try:
            return await self.writer.patch(
                obj.metadata.uid,
                self.kind.resource,
                obj,
                body,
                self.kind.object_type,
                subresource=subresource,
            )
        except NotFoundError as error:
            if not names_missing_object(str(error), obj.metadata.name):
                # Not the job is missing, but what was to be patched.
                raise
            raise JobGoneError(str(error)) from error


def _has_unobservable_state(new: JobStatus) -> bool:
    """Return whether a status contains facts that the job's children do not show."""
    is_recorded = new.restarts or new.attempts
    return bool(is_recorded) or any(r.completed_indexes for r in new.replica_statuses)
