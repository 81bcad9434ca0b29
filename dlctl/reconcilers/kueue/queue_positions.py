"""The positions of Workloads in Kueue's cluster queues, read from its visibility API.

Kueue writes them nowhere, so they are polled: one request at a time, one for each LocalQueue in
which a job waits, and a limited number of them in a round.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.objects.workloads import (
    LOCAL_QUEUES,
    VISIBILITY_VERSIONS,
    PendingWorkloadsSummary,
    Workload,
)
from dlctl.errors import DlctlError, describe
from dlctl.informers.store import Store
from dlctl.informers.yield_budget import YieldBudget
from dlctl.kube.client import Client
from dlctl.kube.decoding import decode
from dlctl.kube.discovery import served_version
from dlctl.kube.errors import ApiError, NotFoundError
from dlctl.reconcilers.kueue.workload_waiting import shown_position
from dlctl.workqueue.queue import WorkQueue

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 5.0
# Of one LocalQueue; the Workloads behind them have no position.
MAX_WORKLOADS: Final = 1000
# Of a round: users may name any number of queues. The next round goes on with the others.
MAX_QUEUES: Final = 100
# Of a round, which ends with the last of them; it skips a namespace after its first timeout.
MAX_TIMEOUTS: Final = 3
# Of a LocalQueue in a row; then the positions that were read before are dropped.
MAX_FAILURES: Final = 3
_BY_LOCAL_QUEUE: Final = "local queue"


class NotServedError(DlctlError):
    """The cluster does not serve the visibility API."""


@attrs.define(eq=False)
class LocalQueue:
    """A LocalQueue in which a job waits, with the positions that were last read."""

    key: ObjectKey
    # As jobs show them, by Workload.
    positions: Mapping[ObjectKey, str] = attrs.field(init=False, factory=dict)
    # The number of this read among those of all LocalQueues; 0 if it was never read.
    last_read: int = attrs.field(init=False, default=0)
    # In a row.
    failure_count: int = attrs.field(init=False, default=0)

    def set_positions(self, positions: Mapping[ObjectKey, str]) -> None:
        self.positions = positions
        self.failure_count = 0

    def add_failure(self) -> None:
        """Count a failure; after several in a row, no position is known."""
        self.failure_count += 1
        if self.failure_count >= MAX_FAILURES:
            self.positions = {}


def next_queues(queues: Iterable[LocalQueue]) -> list[LocalQueue]:
    """Return the queues that a round reads: one of each namespace, another of each, and so on.

    Namespaces and the queues of a namespace take turns over the rounds.
    """
    by_namespace: dict[str, list[LocalQueue]] = {}
    for queue in sorted(queues, key=lambda one: one.last_read):
        by_namespace.setdefault(queue.key.namespace, []).append(queue)
    # The last queue of each is the one that was read last.
    namespaces = sorted(by_namespace.values(), key=lambda of_one: of_one[-1].last_read)
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*namespaces))
    return list(itertools.islice(filter(None, in_turn), MAX_QUEUES))


@attrs.define(eq=False)
class QueuePositions:
    """Reads the positions regularly, and enqueues the jobs that show another one."""

    client: Client
    workloads: Store[Workload]
    # Returns the jobs that a Workload belongs to, each with its queue.
    jobs_of: Callable[[Workload], Iterable[tuple[WorkQueue[ObjectKey], ObjectKey]]]
    # As jobs show them; without those that are not known.
    by_workload: dict[ObjectKey, str] = attrs.field(init=False, factory=dict)
    _queues: dict[ObjectKey, LocalQueue] = attrs.field(init=False, factory=dict)
    _read_count: int = attrs.field(init=False, default=0)
    _is_failing: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.workloads.add_index(_BY_LOCAL_QUEUE, _local_queue)

    async def run(self) -> None:
        """Read the positions while jobs wait for quota, until cancelled."""
        while True:
            keys = await self._local_queues()
            self._queues = {key: self._queues.get(key) or LocalQueue(key) for key in keys}
            # Without a queue to read, nothing is known about the server.
            if self._queues:
                self._log(await self._read_round())
            await self._replace()
            await asyncio.sleep(INTERVAL_S)

    async def _local_queues(self) -> list[ObjectKey]:
        """Return the LocalQueues in which a job waits; other Workloads are not ours to explain."""
        keys, budget = [], YieldBudget()
        for value in self.workloads.index_values(_BY_LOCAL_QUEUE):
            for workload in self.workloads.indexed(_BY_LOCAL_QUEUE, value):
                # A Workload may name a thousand owners, each of which is looked up.
                if budget.spend():
                    await budget.renew()
                if any(True for _ in self.jobs_of(workload)):
                    namespace, _, name = value.partition("/")
                    keys.append(ObjectKey(namespace, name))
                    break
        return keys

    async def _read_round(self) -> str:
        """Read the queues whose turn it is; return a failure, empty without one.

        The others keep their positions, unless the server fails.
        """
        failures: dict[LocalQueue, str] = {}
        try:
            async for queue, error in self._read_queues():
                failures[queue] = describe(error) if error else ""
        except (DlctlError, OSError) as error:
            # It concerns the server: the other queues would fail likewise.
            of_server = describe(error)
            failures = {one: failures.get(one, of_server) for one in self._queues.values()}
            if isinstance(error, NotServedError):
                for queue in failures:
                    queue.set_positions({})
        for queue, failure in failures.items():
            if failure:
                queue.add_failure()
        return next(filter(None, failures.values()), "")

    async def _read_queues(
        self,
    ) -> AsyncIterator[tuple[LocalQueue, ApiError | TimeoutError | None]]:
        """Yield each queue that was read, with the error of that queue if it could not be.

        :raises DlctlError: if the server fails; likewise OSError.
        """
        resource = await self._served()
        slow_namespaces, is_answering = set[str](), False
        for queue in next_queues(self._queues.values()):
            if queue.key.namespace in slow_namespaces:
                continue
            error = await self._read_queue(resource, queue)
            yield queue, error
            if isinstance(error, TimeoutError):
                slow_namespaces.add(queue.key.namespace)
            else:
                is_answering = True
            if len(slow_namespaces) == MAX_TIMEOUTS:
                break
        if not is_answering:
            raise TimeoutError

    async def _read_queue(
        self, resource: Resource, queue: LocalQueue
    ) -> ApiError | TimeoutError | None:
        """Read a queue; return an error from which nothing follows for the others."""
        self._read_count += 1
        queue.last_read = self._read_count
        try:
            queue.set_positions(await self._read(resource, queue.key))
        except NotFoundError:
            # Users may name a queue that does not exist.
            queue.set_positions({})
        except (ApiError, TimeoutError) as error:
            return error
        return None

    def _log(self, failure: str) -> None:
        """Log a failure, once until all queues can be read again."""
        if failure and not self._is_failing:
            logger.warning("cannot read positions in Kueue's queues", extra={"error": failure})
        self._is_failing = any(queue.failure_count for queue in self._queues.values())

    async def _served(self) -> Resource:
        """Return the resource in the version that the cluster serves."""
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            version = await served_version(self.client, LOCAL_QUEUES.group, VISIBILITY_VERSIONS)
        if not version:
            raise NotServedError(f"the cluster does not serve {LOCAL_QUEUES.group}")
        return attrs.evolve(LOCAL_QUEUES, version=version)

    async def _read(self, resource: Resource, queue: ObjectKey) -> dict[ObjectKey, str]:
        path = resource.path(queue.namespace, queue.name, "pendingworkloads")
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            response = await self.client.get_raw(path, {"limit": str(MAX_WORKLOADS)})
        summary = decode(response, PendingWorkloadsSummary)
        return {
            ObjectKey(queue.namespace, one.metadata.name): shown_position(
                one.position_in_cluster_queue + 1
            )
            for one in (summary.items or ())[:MAX_WORKLOADS]
            if one.position_in_cluster_queue is not None
        }

    async def _replace(self) -> None:
        found: dict[ObjectKey, str] = {}
        for local_queue in self._queues.values():
            found |= local_queue.positions
        changed = {key for key, _ in self.by_workload.items() ^ found.items()}
        self.by_workload.clear()
        self.by_workload.update(found)
        budget = YieldBudget()
        for workload in filter(None, map(self.workloads.get, changed)):
            if budget.spend():
                await budget.renew()
            for queue, job in self.jobs_of(workload):
                queue.add(job)


def _local_queue(workload: Workload) -> Iterator[str]:
    """Yield the namespace and name of the LocalQueue in which a Workload waits for quota."""
    if workload.waits_for_quota and workload.spec is not None and workload.spec.queue_name:
        yield f"{workload.metadata.namespace}/{workload.spec.queue_name}"
