"""Carries out the plans of jobs: pods first, then the status, then the pods' finalizers."""

from typing import Any

import attrs
import msgspec

from dlctl.api.meta import BATCH_JOBS, PODS, ObjectKey
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.object_writer import ObjectWriter
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, InvalidError, NamespaceTerminatingError, NotFoundError
from dlctl.kube.queries import PatchKind
from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.job_controller.plan import JobPlan
from dlctl.local.job_controller.pod_state import FINALIZER
from dlctl.local.job_controller.pod_template import new_pod
from dlctl.local.node.api_types import NodePod


@attrs.define(eq=False)
class BatchJobWriter:
    """The writes of the controller; the job waits until the stores show them."""

    client: Client
    objects: ObjectWriter
    recorder: EventRecorder

    async def apply(self, job: ControlledBatchJob, plan: JobPlan) -> None:
        """Carry out a plan; a creation that fails is raised once the status is written."""
        for pod in plan.delete:
            await self._delete(job, pod, forget=plan.forget_deleted)
        missing, error = await self._create_pods(job, plan.create_count)
        status = plan.status
        if missing:
            status = msgspec.structs.replace(status, active=status.active - missing)
        if status != job.status:
            body = {"status": status.patch()}
            await self.objects.patch(job.metadata.uid, BATCH_JOBS, job, body, subresource="status")
        for pod in plan.release:
            await self.remove_finalizer(pod)
        for event in plan.events:
            self._record(job, event.type, event.reason, event.message)
        if error is not None:
            raise error

    async def _create_pods(
        self, job: ControlledBatchJob, count: int
    ) -> tuple[int, ApiError | None]:
        """Create pods; return how many are missing, and the error because of which."""
        key = ObjectKey(job.metadata.namespace or "", job.metadata.name)
        body = new_pod(job)
        for index in range(count):
            try:
                created = await self.client.create(PODS, key.namespace, body, NodePod)
            except NamespaceTerminatingError:
                return count - index, None
            except ApiError as error:
                self._record(job, "Warning", "FailedCreate", f"Error creating: {error}")
                return count - index, error
            version = created.metadata.resource_version
            self.objects.expectations.expect_write(job.metadata.uid, PODS, version)
            message = f"Created pod: {created.metadata.name}"
            self._record(job, "Normal", "SuccessfulCreate", message)
        return 0, None

    async def _delete(self, job: ControlledBatchJob, pod: NodePod, *, forget: bool) -> None:
        if forget:
            await self.remove_finalizer(pod)
        await self.objects.delete(job.metadata.uid, PODS, pod)
        message = f"Deleted pod: {pod.metadata.name}"
        self._record(job, "Normal", "SuccessfulDelete", message)

    async def remove_finalizer(self, pod: NodePod) -> None:
        """Remove the finalizer of a pod, unless that has been done or the pod is gone."""
        finalizers = pod.metadata.finalizers or ()
        if FINALIZER not in finalizers:
            return
        path = f"/metadata/finalizers/{list(finalizers).index(FINALIZER)}"
        steps: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
            {"op": "test", "path": path, "value": FINALIZER},
            {"op": "remove", "path": path},
        ]
        try:
            await self.client.patch(PODS, pod.key, steps, kind=PatchKind.JSON)
        except (NotFoundError, InvalidError):
            # Another pod by now, or without the finalizer; if not, the store will show it.
            return

    async def delete_finished(self, job: ControlledBatchJob) -> None:
        """Delete a job whose time to live is over, once its pods are deleted.

        :raises ConflictError: if it has changed meanwhile, perhaps its time to live.
        """
        await self.client.delete(
            BATCH_JOBS,
            job.key,
            uid=job.metadata.uid,
            resource_version=job.metadata.resource_version,
            propagation="Foreground",
        )

    def _record(self, job: ControlledBatchJob, type_: str, reason: str, message: str) -> None:
        self.recorder.record(BATCH_JOBS, job.metadata, type_, reason, message)
