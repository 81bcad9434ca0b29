"""Reconciles one job: plans what it needs, and applies the plan.

Also removes the finalizers of pods whose job is gone or has finished, and deletes finished jobs
when their time to live is over.
"""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from dlctl.api.meta import BATCH_JOBS, PODS, UID, ObjectKey, Resource
from dlctl.clock import Clock
from dlctl.controller.controller import Result
from dlctl.controller.expectations import ChildStore  # noqa: TC001 - of a local variable.
from dlctl.informers.store import Store
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.job_controller.failure_backoff import NO_FAILURES, FailureRecord
from dlctl.local.job_controller.job_writer import BatchJobWriter
from dlctl.local.job_controller.plan import plan_job
from dlctl.local.job_controller.pod_state import is_tracked
from dlctl.local.node.api_types import NodePod

# The index of pods with the finalizer, by the key of their job.
TRACKED: Final = "tracked"
_JOB_NAME: Final = "job-name"


def job_keys(pod: NodePod) -> Iterable[str]:
    """Return the key of the job that a pod with the finalizer belongs to, or belonged to."""
    key = job_key(pod) if is_tracked(pod) else None
    return () if key is None else (str(key),)


def job_key(pod: NodePod) -> ObjectKey | None:
    """Return the key of a pod's job; without an owner, of the one that its label names."""
    owner, meta = pod.metadata.controller, pod.metadata
    if owner is None:
        name = meta.label(_JOB_NAME) if is_tracked(pod) else None
    else:
        name = owner.name if (owner.group, owner.kind) == ("batch", "Job") else None
    return None if name is None else ObjectKey(meta.namespace or "", name)


@attrs.define(eq=False)
class BatchJobReconciler:
    """The reconciler of all jobs; it remembers the recent failures of their pods."""

    jobs: Store[ControlledBatchJob]
    pods: Store[NodePod]
    writer: BatchJobWriter
    clock: Clock
    _failures: dict[UID, FailureRecord] = attrs.field(init=False, factory=dict)
    _uids: dict[ObjectKey, UID] = attrs.field(init=False, factory=dict)

    async def reconcile(self, key: ObjectKey) -> Result:
        try:
            return await self._reconcile(key)
        except (ConflictError, NotFoundError):
            # Changed or deleted since the store has seen it, which it is about to show.
            return Result(requeue=True)

    async def _reconcile(self, key: ObjectKey) -> Result:
        job = self.jobs.get(key)
        self._forget_predecessor(key, job)
        await self._remove_orphaned_finalizers(key, job)
        if job is None or not job.is_ours:
            return Result()
        if job.status.is_finished:
            return await self._clean_up(job)
        if not self._shows_own_writes(key.namespace, job.metadata.uid):
            # The event that brings the store up to date is to come.
            return Result()
        uid, now = job.metadata.uid, self.clock.now()
        failures = self._failures.get(uid, NO_FAILURES)
        plan = plan_job(job, self.pods.owned_by(key.namespace, uid), failures, now)
        await self.writer.apply(job, plan)
        self._failures[uid] = plan.failures
        return Result(requeue_after_s=plan.requeue_after_s)

    def _shows_own_writes(self, namespace: str, uid: UID) -> bool:
        stores: Mapping[Resource, ChildStore] = {PODS: self.pods, BATCH_JOBS: self.jobs}
        return self.writer.objects.expectations.satisfied(namespace, uid, stores)

    def _forget_predecessor(self, key: ObjectKey, job: ControlledBatchJob | None) -> None:
        uid = None if job is None else job.metadata.uid
        old = self._uids.get(key)
        if old is not None and old != uid:
            self._failures.pop(old, None)
            self.writer.objects.expectations.forget(old)
            del self._uids[key]
        if uid is not None:
            self._uids[key] = uid

    async def _remove_orphaned_finalizers(
        self, key: ObjectKey, job: ControlledBatchJob | None
    ) -> None:
        """Remove the finalizers of pods whose job is gone or has finished: nothing counts them."""
        for pod in self.pods.indexed(TRACKED, str(key)):
            is_owner = job is not None and job.metadata.uid == pod.metadata.controller_uid
            if job is None or not is_owner or (job.is_ours and job.status.is_finished):
                await self.writer.remove_finalizer(pod)

    async def _clean_up(self, job: ControlledBatchJob) -> Result:
        self._failures.pop(job.metadata.uid, None)
        ttl_s = job.spec.ttl_seconds_after_finished
        if ttl_s is None or job.metadata.is_terminating:
            return Result()
        left_s = ttl_s - (self.clock.now() - _finished_at(job)).total_seconds()
        if left_s > 0:
            return Result(requeue_after_s=left_s)
        await self.writer.delete_finished(job)
        return Result()


def _finished_at(job: ControlledBatchJob) -> datetime.datetime:
    name = "Complete" if job.status.is_true("Complete") else "Failed"
    condition = job.status.condition(name)
    assert condition is not None, "the job has finished"
    since: Any = condition.last_transition_time
    return datetime.datetime.fromisoformat(since)
