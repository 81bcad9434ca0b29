"""Electors against an embedded server, in simulated time."""

import asyncio
import random
from typing import Any

import attrs
import pytest

from dlctl.api.meta import LEASES
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.leaderelection.candidates import TIMING, running
from tests.leaderelection.lease_server import KEY, LEASE_PATH, LeaseServer
from tests.support.throttling import too_many_requests

pytestmark = pytest.mark.looptime(noop_cycles=8)


async def test_leader_keeps_leading_while_it_renews(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        second = await race.join()
        await asyncio.sleep(100)
        assert race.leaders == [first]
        assert race.lease_server.spec["leaseTransitions"] == 0
        # One read for each observed renewal, and a few in between.
        assert race.lease_server.requests(second.name).count("get") <= 70
        assert race.lease_server.requests(second.name).count("update") == 0


async def test_released_lease_is_acquired_at_once(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        second = await race.join()
        await asyncio.sleep(1)
        await first.stop()
        assert await race.led_by(second, within_s=3) < 0.5


async def test_released_lease_is_acquired_soon_even_without_a_watch(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        forbidden = status.forbidden(LEASES, KEY.name, "no watch for you")
        race.lease_server.server.faults.add(Fault(verb="watch", status=forbidden, times=None))
        first = await race.first_leader()
        second = await race.join()
        await asyncio.sleep(10)
        await first.stop()
        assert await race.led_by(second, within_s=4.5) > 0


async def test_dead_leader_is_succeeded_when_its_lease_expires(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        second = await race.join()
        await asyncio.sleep(9)
        await first.kill()
        assert TIMING.renew_s < await race.led_by(second, within_s=17) <= TIMING.lease_s + 0.5


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"status": status.conflict(LEASES, KEY.name)}, id="conflicts"),
        pytest.param({"status": status.internal_error("broken")}, id="errors"),
        pytest.param({"status": too_many_requests("busy", 1)}, id="too many requests"),
        pytest.param({"reset": "before"}, id="resets"),
        pytest.param({"delay_s": 1e4}, id="hangs"),
    ],
)
async def test_leader_that_cannot_renew_stops_before_another_starts(
    lease_server: LeaseServer, how: dict[str, Any]
) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        second = await race.join()
        await asyncio.sleep(5)
        race.fail_requests(first, **how)
        await race.led_by(second, within_s=TIMING.lease_s + 2)
        assert "was not renewed for 9 s" in str(first.loss)


async def test_failures_shorter_than_the_deadline_keep_the_lease(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        await race.join()
        for how in (
            {"delay_s": 1e4},
            {"reset": "before"},
            {"status": status.internal_error("broken")},
        ):
            race.fail_requests(first, **how)
            await asyncio.sleep(6)
            race.lease_server.server.faults.clear()
            await asyncio.sleep(6)
            assert race.leaders == [first]


@pytest.mark.parametrize("how", [{"delay_s": 1e4}, {"reset": "before"}, {"reset": "after"}])
async def test_candidate_survives_any_failure(
    lease_server: LeaseServer, how: dict[str, Any]
) -> None:
    async with running(lease_server) as race:
        fault = Fault(resource=LEASE_PATH, times=None)
        race.lease_server.server.faults.add(attrs.evolve(fault, **how))
        first = await race.join()
        await asyncio.sleep(60)
        assert not race.leaders
        race.lease_server.server.faults.clear()
        await race.led_by(first, within_s=12)


async def test_lease_taken_by_force_is_lost_at_the_next_renewal(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        await race.lease_server.put(
            {"holderIdentity": "an administrator", "leaseDurationSeconds": 15}
        )
        await asyncio.sleep(TIMING.retry_s + 0.1)
        assert not first.elector.validity.may_write()
        assert "an administrator" in str(first.loss)


async def test_candidate_with_a_hanging_event_loop_lets_others_lead(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        first.unresponsive_s = 0.1
        second = await race.join()
        await race.led_by(second, within_s=1)


async def test_leader_with_a_hanging_event_loop_is_replaced_after_a_while(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        second = await race.join()
        first.unresponsive_s = TIMING.stall_s
        await asyncio.sleep(60)
        assert race.leaders == [first]
        first.unresponsive_s += 1
        await race.led_by(second, within_s=TIMING.retry_s + TIMING.lease_s + 1)
        assert "blocked for 31.0 s" in str(first.loss)


async def test_stop_during_a_request_still_releases_the_lease(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        race.fail_requests(first, verb="update", delay_s=1e4, times=1)
        await asyncio.sleep(TIMING.retry_s + 1)
        await first.stop()
        assert race.lease_server.holder == ""


@pytest.mark.parametrize("how", [{"reset": "before"}, {"status": status.internal_error("broken")}])
async def test_release_is_retried(lease_server: LeaseServer, how: dict[str, Any]) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        race.fail_requests(first, times=3, **how)
        await first.stop()
        assert race.lease_server.holder == ""


async def test_forbidden_release_is_given_up_at_once(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        race.fail_requests(first, status=StatusError(403, "Forbidden", "no"))
        began = asyncio.get_running_loop().time()
        await first.stop()
        assert asyncio.get_running_loop().time() - began < 0.1
        assert race.lease_server.holder == first.name


async def test_release_is_given_up_after_the_deadline(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.first_leader()
        race.fail_requests(first, delay_s=1e4)
        began = asyncio.get_running_loop().time()
        await first.stop()
        assert asyncio.get_running_loop().time() - began <= TIMING.renew_s + 0.1
        assert race.lease_server.holder == first.name


@pytest.mark.parametrize("seed", range(6))
async def test_no_two_candidates_lead_at_the_same_time(
    lease_server: LeaseServer, seed: int
) -> None:
    """Three candidates with random faults, kills, stops and restarts."""
    async with running(lease_server) as race:
        chance = random.Random(seed)
        troubles: list[dict[str, Any]] = [
            {"status": status.conflict(LEASES, KEY.name)},
            {"status": status.internal_error("broken")},
            {"reset": "before"},
            {"reset": "after"},
            {"delay_s": 4.0},
            {"delay_s": 1e4},
        ]
        for _ in range(3):
            await race.join()
        for _ in range(25):
            candidate = chance.choice(race.candidates[-3:])
            match chance.randrange(6):
                case 0:
                    await candidate.kill()
                    await race.join()
                case 1:
                    await candidate.stop()
                    await race.join()
                case 2:
                    race.lease_server.server.faults.clear()
                case _:
                    race.fail_requests(
                        candidate, probability=chance.choice((0.7, 1.0)), **chance.choice(troubles)
                    )
            await asyncio.sleep(chance.uniform(0, 12))
        race.lease_server.server.faults.clear()
        await race.join()
        await asyncio.sleep(TIMING.lease_s + 5)
        assert len(race.leaders) == 1
        assert race.leaders[0].name == race.lease_server.holder
