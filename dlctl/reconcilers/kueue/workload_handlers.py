"""Maps Kueue's Workloads, and their changes, to the jobs that they belong to."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from dlctl.api.meta import PODS, ObjectKey, OwnerReference
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.workloads import Workload
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers.handlers.batch_periods import BATCH_PERIOD_S
from dlctl.reconcilers.handlers.job_queues import JobQueues
from dlctl.reconcilers.kueue.workload_waiting import workload_waiting
from dlctl.workqueue.queue import WorkQueue

# Kueue names one. Whoever may write a Workload could name thousands, each time to be reconciled.
_MAX_JOBS: Final = 8


def enqueue_queued_job(queues: JobQueues, pods: Store[Pod]) -> Callable[[Change[Workload]], None]:
    """Return a handler that enqueues the jobs whose Workload now waits for something else."""

    def handler(change: Change[Workload]) -> None:
        waits = [workload_waiting(obj) if obj else None for obj in (change.old, change.new)]
        changed = change.new or change.old
        if changed is None or waits[0] == waits[1]:
            return
        for queue, job in jobs_of_workload(queues, pods, changed):
            queue.add_after(job, BATCH_PERIOD_S)

    return handler


def jobs_of_workload(
    queues: JobQueues, pods: Store[Pod], workload: Workload
) -> Iterator[tuple[WorkQueue[ObjectKey], ObjectKey]]:
    """Yield the keys of the jobs that a Workload belongs to, each with its queue.

    A Workload belongs to a job, or to pods of one.
    """
    for ref in islice(_owners(workload, pods), _MAX_JOBS):
        if (found := queues.find(ref, workload.metadata.key.namespace)) is not None:
            yield found


def _owners(workload: Workload, pods: Store[Pod]) -> Iterator[OwnerReference]:
    """Yield the references to the jobs that a Workload belongs to."""
    for ref in workload.metadata.owner_references or ():
        if (ref.group, ref.kind) != (PODS.group, PODS.kind):
            yield ref
            continue
        pod = pods.get(ObjectKey(workload.metadata.namespace or "", ref.name))
        if pod is not None and pod.metadata.controller is not None:
            # The pods of a group belong to one job.
            yield pod.metadata.controller
            return
