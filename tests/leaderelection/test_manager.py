"""The manager before it leads, while it stops, and after it has lost its lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest

from dlctl.kube.client import Client
from dlctl.leaderelection.lease_lock import LeaseLostError
from dlctl.local.apiserver.faults import Fault
from dlctl.manager import Manager
from dlctl.metrics import Metrics
from tests.builders import mxjob
from tests.support.harness import ClusterHarness, start_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.slow]


@attrs.define(eq=False)
class ManualLeadership:
    """A leadership that a test grants and revokes; it records how the block ended."""

    cluster: ClusterHarness
    won: asyncio.Event = attrs.field(factory=asyncio.Event)
    lost: asyncio.Event = attrs.field(factory=asyncio.Event)
    writes_at_release: int | None = None

    def may_write(self) -> bool:
        return True

    def healthy(self) -> bool:
        return True

    @asynccontextmanager
    async def leading(self, stop: asyncio.Event) -> AsyncIterator[bool]:
        try:
            async with asyncio.TaskGroup() as group:
                losing = group.create_task(self._lose())
                waits = [group.create_task(event.wait()) for event in (self.won, stop)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
                yield not stop.is_set()
                losing.cancel()
        finally:
            self.writes_at_release = writes(self.cluster)

    async def _lose(self) -> None:
        await self.lost.wait()
        raise LeaseLostError("it is gone")


@attrs.define(eq=False)
class Managed:
    """A manager whose leadership a test controls."""

    cluster: ClusterHarness
    leadership: ManualLeadership
    manager: Manager
    stop: asyncio.Event
    task: "asyncio.Task[None]"


def writes(cluster: ClusterHarness) -> int:
    return cluster.history.writes().total()


def is_leader(managed: Managed) -> float | None:
    return managed.manager.metrics.registry.get_sample_value("mpi_operator_is_leader")


@asynccontextmanager
async def managing() -> AsyncIterator[Managed]:
    async with (
        start_cluster() as cluster,
        Client(cluster.server.config(), user_agent="dlctl") as client,
    ):
        leadership, stop = ManualLeadership(cluster), asyncio.Event()
        manager = Manager(
            client,
            cluster.kinds,
            cluster.options,
            Metrics(),
            cluster.clock,
            leadership=leadership,
        )
        task = asyncio.create_task(manager.run(stop))
        yield Managed(cluster, leadership, manager, stop, task)
        task.cancel()
        await asyncio.wait([task])


async def test_standby_has_synced_stores_and_writes_nothing() -> None:
    async with managing() as managed:
        await managed.cluster.submit(mxjob(), {})
        await asyncio.sleep(60)
        assert managed.manager.synced
        assert writes(managed.cluster) == 0
        # Otherwise keys of created and deleted jobs would accumulate on a standby.
        assert [len(c.queue) for c in managed.manager._parts.controllers if c.queue] == []

        managed.leadership.won.set()
        assert (await managed.cluster.ended())["state"] == "Succeeded"


class BrokenWork:
    """Background work that fails whenever it runs."""

    async def run(self) -> None:
        await asyncio.sleep(0.1)
        raise RecursionError("too deep")


async def test_broken_background_work_ends_no_controller() -> None:
    async with managing() as managed:
        managed.manager._parts.runnables.append(BrokenWork())
        managed.leadership.won.set()
        await managed.cluster.submit(mxjob(), {})
        assert (await managed.cluster.ended())["state"] == "Succeeded"
        managed.stop.set()
        await managed.task


async def test_standby_stops_at_once_and_never_works() -> None:
    async with managing() as managed:
        await managed.cluster.submit(mxjob(), {})
        await asyncio.sleep(10)
        managed.stop.set()
        managed.leadership.won.set()
        async with asyncio.timeout(1):
            await managed.task
        assert writes(managed.cluster) == 0


async def test_lease_is_released_after_the_last_write() -> None:
    async with managing() as managed:
        cluster = managed.cluster
        managed.leadership.won.set()
        # Responses take so long that the stop comes in the middle of the work.
        cluster.server.faults.add(
            Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=3, times=None)
        )
        await cluster.submit(mxjob(), {})
        await asyncio.sleep(2)
        assert cluster.server.faults.matched
        managed.stop.set()
        await managed.task
        assert managed.leadership.writes_at_release == writes(cluster)
        await asyncio.sleep(60)
        assert managed.leadership.writes_at_release == writes(cluster)
        assert cluster.pods()
        assert "Created" in str(cluster.events())


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost lease", "stop"])
async def test_gauge_of_the_leader_is_1_only_while_it_leads(is_lost: bool) -> None:
    async with managing() as managed:
        found = [is_leader(managed)]
        managed.leadership.won.set()
        await asyncio.sleep(5)
        found.append(is_leader(managed))
        (managed.leadership.lost if is_lost else managed.stop).set()
        await asyncio.wait([managed.task])
        assert [*found, is_leader(managed)] == [0, 1, 0]
        assert isinstance(managed.task.exception(), LeaseLostError) is is_lost


async def test_lost_lease_stops_everything_without_a_grace_period() -> None:
    async with managing() as managed:
        cluster = managed.cluster
        managed.leadership.won.set()
        cluster.server.faults.add(
            Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=1e4, times=None)
        )
        await cluster.submit(mxjob(), {})
        await asyncio.sleep(5)
        assert cluster.server.faults.matched
        managed.leadership.lost.set()
        with pytest.raises(LeaseLostError, match="it is gone"):
            async with asyncio.timeout(1):
                await managed.task
