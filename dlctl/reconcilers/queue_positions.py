"""The positions of Workloads in Kueue's cluster queues, read from its visibility API.

Kueue writes them nowhere, so they are polled: one request at a time, one for each LocalQueue in
which a job waits.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

import attrs

from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.workloads import (
    LOCAL_QUEUES,
    VISIBILITY_VERSIONS,
    PendingWorkloadsSummary,
    Workload,
)
from dlctl.errors import DlctlError
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.kube.decoding import decode
from dlctl.kube.discovery import served_version
from dlctl.kube.errors import ApiError, NotFoundError
from dlctl.workqueue.queue import WorkQueue

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 5.0
# Of one LocalQueue; the Workloads behind them have no position.
MAX_WORKLOADS: Final = 1000
_BY_LOCAL_QUEUE: Final = "local queue"


class NotServedError(DlctlError):
    """The cluster does not serve the visibility API."""


@attrs.define(eq=False)
class QueuePositions:
    """Reads the positions regularly, and enqueues the jobs whose positions have changed."""

    client: Client
    workloads: Store[Workload]
    # Returns the jobs that a Workload belongs to, each with its queue.
    jobs_of: Callable[[Workload], Iterable[tuple[WorkQueue[ObjectKey], ObjectKey]]]
    # Counted from 1; without those that could not be read the last time.
    by_workload: dict[ObjectKey, int] = attrs.field(init=False, factory=dict)
    _is_failing: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.workloads.add_index(_BY_LOCAL_QUEUE, _local_queue)

    async def run(self) -> None:
        """Read the positions while jobs wait for quota, until cancelled."""
        while True:
            self._replace(await self._read_all(list(self._local_queues())))
            await asyncio.sleep(INTERVAL_S)

    def _local_queues(self) -> Iterator[ObjectKey]:
        """Yield the LocalQueues in which a job waits; other Workloads are not ours to explain."""
        for value in self.workloads.index_values(_BY_LOCAL_QUEUE):
            waiting = self.workloads.indexed(_BY_LOCAL_QUEUE, value)
            if any(True for workload in waiting for _ in self.jobs_of(workload)):
                namespace, _, name = value.partition("/")
                yield ObjectKey(namespace, name)

    async def _read_all(self, queues: Iterable[ObjectKey]) -> dict[ObjectKey, int]:
        """Return the positions in these queues, without those that cannot be read."""
        found: dict[ObjectKey, int] = {}
        resource, failure = None, ""
        try:
            for queue in queues:
                resource = resource or await self._served()
                try:
                    found |= await self._read(resource, queue)
                except NotFoundError:
                    # Users may name a queue that does not exist.
                    continue
                except ApiError as error:
                    failure = str(error)
        except (DlctlError, OSError) as error:
            # Of the server: the other queues would fail likewise.
            failure = str(error) or type(error).__name__
        if failure and not self._is_failing:
            logger.warning("cannot read positions in Kueue's queues", extra={"error": failure})
        # Without a queue to read, nothing is known about the server.
        self._is_failing = bool(failure) or (self._is_failing and resource is None)
        return found

    async def _served(self) -> Resource:
        """Return the resource in the version that the cluster serves."""
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            version = await served_version(self.client, LOCAL_QUEUES.group, VISIBILITY_VERSIONS)
        if not version:
            raise NotServedError(f"the cluster does not serve {LOCAL_QUEUES.group}")
        return attrs.evolve(LOCAL_QUEUES, version=version)

    async def _read(self, resource: Resource, queue: ObjectKey) -> dict[ObjectKey, int]:
        # The name is what a user wrote.
        path = resource.path(queue.namespace, quote(queue.name, safe=""), "pendingworkloads")
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            response = await self.client.get_raw(path, {"limit": str(MAX_WORKLOADS)})
        summary = decode(response, PendingWorkloadsSummary)
        return {
            ObjectKey(queue.namespace, one.metadata.name): one.position_in_cluster_queue + 1
            for one in (summary.items or ())[:MAX_WORKLOADS]
            if one.position_in_cluster_queue is not None
        }

    def _replace(self, found: Mapping[ObjectKey, int]) -> None:
        changed = {key for key, _ in self.by_workload.items() ^ found.items()}
        self.by_workload.clear()
        self.by_workload.update(found)
        for workload in filter(None, map(self.workloads.get, changed)):
            for queue, job in self.jobs_of(workload):
                queue.add(job)


def _local_queue(workload: Workload) -> Iterator[str]:
    """Yield the namespace and name of the LocalQueue in which a Workload waits for quota."""
    if workload.waits_for_quota and workload.spec is not None and workload.spec.queue_name:
        yield f"{workload.metadata.namespace}/{workload.spec.queue_name}"
