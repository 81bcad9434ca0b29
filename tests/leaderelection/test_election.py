"""Leader election as the manager uses it, including its thread."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from dlctl.errors import ConfigError
from dlctl.kube.config import ClusterConfig
from dlctl.leaderelection.election import Election
from dlctl.leaderelection.leadership import NoLeaderElection
from dlctl.leaderelection.lease_lock import LeaseLostError
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer
from tests.leaderelection.lease_server import (
    KEY,
    LEASE_PATH,
    QUICK,
    FakeWatchdog,
    stored_lease,
)
from tests.leaderelection.threaded_server import serve_in_thread
from tests.support.throttling import too_many_requests

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serve_in_thread() as server:
        yield server


@pytest.fixture
def elect(server: ApiServer) -> Callable[..., Election]:
    async def connect() -> ClusterConfig:
        return server.config("default")

    def make(identity: str = "us", timing: LeaseTiming = QUICK) -> Election:
        watchdog = FakeWatchdog()
        return Election(connect, KEY.name, timing=timing, watchdog=watchdog, identity=identity)

    return make


def holder(server: ApiServer) -> str:
    return str(stored_lease(server).get("spec", {}).get("holderIdentity") or "")


def status_of(election: Election) -> float | None:
    registry = election.metrics.registry
    return registry.get_sample_value("leader_election_master_status", {"name": KEY.name})


async def test_lease_is_held_for_the_whole_block(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    election, stop = elect(), asyncio.Event()
    assert (status_of(election), election.may_write()) == (0, False)
    async with election.leading(stop) as leading:
        assert leading
        assert (status_of(election), election.may_write()) == (1, True)
        stop.set()
        # Longer than the lease: while work goes on, it is renewed.
        await asyncio.sleep(QUICK.lease_s)
        assert holder(server) == "us"
        assert election.may_write()
    assert holder(server) == ""
    assert (status_of(election), election.may_write()) == (0, False)
    assert election.watchdog.armed_s is None  # type: ignore[attr-defined]


async def test_standby_takes_over_when_the_leader_has_stopped(
    elect: Callable[..., Election],
) -> None:
    first, second, stop = elect("first"), elect("second"), asyncio.Event()
    order = []

    async def stand_by() -> None:
        async with second.leading(stop):
            order.append("second leads")

    async with asyncio.TaskGroup() as group:
        async with first.leading(stop):
            group.create_task(stand_by())
            await asyncio.sleep(QUICK.retry_s * 2)
            order.append("first ends")
    assert order == ["first ends", "second leads"]


async def test_stopped_standby_never_leads(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    first, second, stop = elect("first"), elect("second"), asyncio.Event()
    async with first.leading(asyncio.Event()):
        asyncio.get_running_loop().call_later(QUICK.retry_s, stop.set)
        async with second.leading(stop) as leading:
            assert not leading
        assert holder(server) == "first"
        assert not second.may_write()


async def test_candidate_stopped_before_the_start_does_not_lead(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    stop = asyncio.Event()
    stop.set()
    async with elect().leading(stop) as leading:
        assert not leading
    assert holder(server) == ""


async def test_lost_lease_cancels_the_block_and_is_not_released(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    election, told = elect(), []

    async def lead() -> None:
        async with election.leading(asyncio.Event()):
            broken = status.internal_error("broken")
            server.faults.add(Fault(resource=LEASE_PATH, verb="write", status=broken, times=None))
            began = time.monotonic()
            try:
                await asyncio.sleep(60)
            finally:
                told.append((time.monotonic() - began, election.may_write()))

    with pytest.raises(LeaseLostError, match="not renewed"):
        await lead()
    [(after_s, may_write)] = told
    assert after_s < QUICK.lease_s
    assert not may_write
    assert holder(server) == "us"
    # It stays dangerous until it exits, so nothing disarms the watchdog.
    assert election.watchdog.armed_s is not None  # type: ignore[attr-defined]


async def test_overloaded_server_that_asks_for_a_long_pause_is_asked_again(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    """Priority and fairness asks for up to 32 s, and takes the next request all the same."""
    election = elect(timing=LeaseTiming(lease_s=3.0, renew_s=2.0, retry_s=0.4, stall_s=5.0))
    async with asyncio.timeout(30), election.leading(asyncio.Event()):
        renewed = stored_lease(server)["spec"]["renewTime"]
        shed = too_many_requests("later", 32)
        server.faults.add(Fault(resource=LEASE_PATH, verb="write", status=shed, times=2))

        def is_renewed() -> bool:
            now = stored_lease(server)["spec"]["renewTime"]
            return server.faults.matched == 2 and now > renewed

        while not is_renewed():  # noqa: ASYNC110 - the server is in another thread.
            await asyncio.sleep(0.05)
        assert election.may_write()


async def test_blocked_event_loop_keeps_the_lease_while_the_thread_renews(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    election = elect()
    async with election.leading(asyncio.Event()) as leading:
        assert leading
        time.sleep(QUICK.lease_s * 1.2)  # noqa: ASYNC251 - that is what is tested
        assert election.may_write()
        await asyncio.sleep(0)
    assert holder(server) == ""


async def test_failed_work_releases_the_lease_and_raises_its_own_error(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    async def work() -> None:
        async with elect().leading(asyncio.Event()):
            assert holder(server) == "us"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    assert holder(server) == ""


async def test_cancelled_work_releases_the_lease(
    server: ApiServer, elect: Callable[..., Election]
) -> None:
    started = asyncio.Event()

    async def work() -> None:
        async with elect().leading(asyncio.Event()):
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert holder(server) == ""


async def test_unreachable_cluster_configuration_ends_the_candidacy() -> None:
    async def connect() -> ClusterConfig:
        raise ConfigError("no cluster")

    election = Election(connect, KEY.name, timing=QUICK, watchdog=FakeWatchdog())
    with pytest.raises(ConfigError, match="no cluster"):
        async with election.leading(asyncio.Event()):
            pytest.fail("nobody can lead")


async def test_controller_without_leader_election_leads_from_start_to_stop() -> None:
    async with NoLeaderElection().leading(asyncio.Event()) as leading:
        assert leading
        assert NoLeaderElection().may_write()
        assert NoLeaderElection().healthy()


def test_identities_are_unique() -> None:
    made = [Election(ClusterConfig, "dlctl", watchdog=FakeWatchdog()).identity for _ in "ab"]  # type: ignore[arg-type]
    assert made[0] != made[1]
    assert made[0].rpartition("_")[0] == made[1].rpartition("_")[0]
