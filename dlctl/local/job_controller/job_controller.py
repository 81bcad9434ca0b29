"""The controller as a whole: what it watches, and its tasks.

A change of a pod that belongs to no job costs one look at its owner.
"""

import asyncio
from typing import Final

from dlctl.api.meta import BATCH_JOBS, ObjectKey
from dlctl.clock import Clock
from dlctl.controller.controller import Controller
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.expectations import Expectations
from dlctl.controller.object_writer import ObjectWriter
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.job_controller.job_writer import BatchJobWriter
from dlctl.local.job_controller.reconciler import TRACKED, BatchJobReconciler, job_key, job_keys
from dlctl.local.node.api_types import NodePod
from dlctl.metrics import Metrics
from dlctl.workqueue.queue import WorkQueue

# How long a job waits for more changes of its pods: one status serves them all.
BATCH_PERIOD_S: Final = 0.1


class JobController:
    """Runs the jobs of a cluster until cancelled; ``pods`` are run by the caller."""

    def __init__(self, client: Client, pods: Informer[NodePod], clock: Clock) -> None:
        metrics = Metrics()
        self._jobs: Informer[ControlledBatchJob] = Informer(
            client, BATCH_JOBS, ControlledBatchJob, clock=clock
        )
        self._queue: WorkQueue[ObjectKey] = WorkQueue()
        self._recorder = EventRecorder(
            client, clock=clock, metrics=metrics, component="job-controller"
        )
        pods.store.add_index(TRACKED, job_keys)
        objects = ObjectWriter(client, Expectations(clock))
        reconciler = BatchJobReconciler(
            self._jobs.store, pods.store, BatchJobWriter(client, objects, self._recorder), clock
        )
        self._controller = Controller(
            BATCH_JOBS.group_resource,
            self._queue,
            reconciler.reconcile,
            metrics,
            wait_synced=[self._jobs.wait_synced, pods.wait_synced],
        )
        self._jobs.add_handler(self._on_job_change)
        pods.add_handler(self._on_pod_change)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run(), name="job controller: jobs")
            group.create_task(self._recorder.run(), name="job controller: events")
            group.create_task(self._controller.run(), name="job controller")

    def _on_job_change(self, change: Change[ControlledBatchJob]) -> None:
        self._queue.add(change.key)

    def _on_pod_change(self, change: Change[NodePod]) -> None:
        for pod in (change.old, change.new):
            key = job_key(pod) if pod else None
            if key is not None:
                self._queue.add_after(key, BATCH_PERIOD_S)
