"""Handlers that map a change in a store to the keys of the affected jobs. They never wait.

They run before the store processes the next event, so a worker that they wake up finds the change
in the store.
"""

from collections.abc import Callable
from typing import Any, Final

from dlctl.api.meta import BATCH_JOBS, Object, ObjectKey, OwnerReference
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.nodes import Node
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.scalers import Scaler, ScalerObject
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers.handlers.batch_periods import (
    add_batch_indexes,
    child_batch_period_s,
    job_batch_period_s,
)
from dlctl.reconcilers.handlers.job_queues import JobQueues
from dlctl.reconcilers.membership.scaler_index import scale_target
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.workqueue.queue import WorkQueue

# Objects that existed before the start have lower priority than current changes.
LOW_PRIORITY: Final = -100
# The index of the pods by the name of their node.
NODE: Final = "node"


def enqueue_job(queue: WorkQueue[ObjectKey]) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the changed job."""

    def handler(change: Change[Object]) -> None:
        queue.add_after(change.key, job_batch_period_s(change), priority=_priority(change))

    return handler


def enqueue_owner(
    queues: JobQueues, pods: Store[Pod], launcher_jobs: Store[BatchJob]
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the owner of a changed child, in the queue of its kind.

    ``pods`` have the indexes that :func:`add_indexes` adds. A pod of one of the ``launcher_jobs``
    belongs to the owner of that Job.
    """

    def handler(change: Change[Object]) -> None:
        last: tuple[WorkQueue[ObjectKey], ObjectKey] | None = None
        for obj in (change.old, change.new):
            ref = _job_reference(obj, launcher_jobs) if obj else None
            found = queues.find(ref, change.key.namespace) if ref else None
            if ref is None or found is None:
                continue
            queue, key = found
            if found != last:
                delay_s = child_batch_period_s(change, pods, key.namespace, ref.uid)
                queue.add_after(key, delay_s, priority=_priority(change))
            last = found

    return handler


def _job_reference(obj: Object, launcher_jobs: Store[BatchJob]) -> OwnerReference | None:
    """Return the reference to the job that a child belongs to, directly or through a Job.

    A pod that is seen before its Job has none: the Job is about to be seen.
    """
    ref = obj.metadata.controller
    if ref is None or (ref.group, ref.kind) != (BATCH_JOBS.group, BATCH_JOBS.kind):
        return ref
    launcher_job = launcher_jobs.get(ObjectKey(obj.metadata.namespace or "", ref.name))
    if launcher_job is None or launcher_job.metadata.uid != ref.uid:
        return None
    return launcher_job.metadata.controller


def enqueue_scale_target(
    read: Callable[[ScalerObject], Scaler], queue: WorkQueue[ObjectKey]
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the current and former target jobs of a scaler."""

    def handler(change: Change[ScalerObject]) -> None:
        for obj in (change.old, change.new):
            key = scale_target(read(obj)) if obj else None
            if key is not None:
                queue.add(key, priority=_priority(change))

    return handler


def enqueue_jobs_on_node(
    queues: JobQueues,
    pods: Store[Pod],
    launcher_jobs: Store[BatchJob],
    nodes: NodeTracker,
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the jobs with pods on a node that is draining, or is lost.

    It keeps ``nodes`` up to date. The other arguments are as for :func:`enqueue_owner`.
    """

    def handler(change: Change[Node]) -> None:
        if not nodes.update(change):
            return
        for pod in pods.indexed(NODE, change.key.name):
            ref = _job_reference(pod, launcher_jobs)
            found = queues.find(ref, pod.metadata.key.namespace) if ref else None
            if found is not None:
                queue, job = found
                queue.add(job)

    return handler


def add_indexes(pods: Store[Pod]) -> None:
    """Add the indexes by which handlers know which pods a change concerns."""
    add_batch_indexes(pods)
    pods.add_index(NODE, lambda pod: (pod.node_name,) if pod.node_name else ())


def _priority(change: Change[Object]) -> int:
    if change.initial:
        return LOW_PRIORITY
    same = (
        change.old is not None
        and change.new is not None
        and change.old.metadata.resource_version == change.new.metadata.resource_version
    )
    return LOW_PRIORITY if same else 0
