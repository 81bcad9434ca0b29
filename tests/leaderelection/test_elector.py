"""Electors against an embedded server, in simulated time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs
import pytest

from dlctl.api.meta import LEASES
from dlctl.kube.client import Client
from dlctl.leaderelection.elector import Elector
from dlctl.leaderelection.lease_lock import LeaseLock, LeaseLostError
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.lease_validity import LeaseValidity
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from dlctl.metrics import Metrics
from tests.leaderelection.lease_server import KEY, LEASE_PATH, FakeWatchdog, LeaseServer
from tests.support.timing import LoopClock, tick_on_read

pytestmark = pytest.mark.looptime(noop_cycles=8)
TIMING = LeaseTiming()


class ObservedValidity(LeaseValidity):
    """A lease validity that reports when it starts or is extended: only then can two overlap."""

    on_extended: Callable[[], None]

    def extend(self, at: float) -> None:
        super().extend(at)
        self.on_extended()


@attrs.define
class Candidate:
    """An elector that runs like a process: until it loses, is killed or stops gracefully."""

    name: str
    elector: Elector
    group: asyncio.TaskGroup
    unresponsive_s: float = 0.0
    loss: LeaseLostError | None = None
    task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        self.task = self.group.create_task(self._serve(), name=self.name)

    @property
    def leads(self) -> bool:
        """Return whether it would write now; a killed one does not."""
        return self.task is not None and not self.task.done() and self.elector.validity.may_write()

    async def kill(self) -> None:
        assert self.task
        self.task.cancel()
        await asyncio.wait([self.task])

    async def stop(self) -> None:
        self.elector.validity.resign()
        await self.kill()
        await self.elector.release()

    async def _serve(self) -> None:
        try:
            await self.elector.acquire()
            await self.elector.renew()
        except LeaseLostError as error:
            self.loss = error


@attrs.define
class CandidateGroup:
    """Candidates for one lease, and the times when each led."""

    lease_server: LeaseServer
    group: asyncio.TaskGroup
    stack: AsyncExitStack
    candidates: list[Candidate] = attrs.field(factory=list)
    overlapped: bool = False
    renewed: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def join(self) -> Candidate:
        name = f"candidate-{len(self.candidates)}"
        clock, metrics = LoopClock(), Metrics()
        client = Client(
            self.lease_server.server.config(),
            user_agent=name,
            request_timeout_s=TIMING.request_timeout_s,
            max_retries=0,
        )
        await self.stack.enter_async_context(client)
        lock = LeaseLock(client, KEY, name, TIMING, clock, metrics)
        validity = ObservedValidity(TIMING, clock, FakeWatchdog())
        validity.on_extended = self.observe
        elector = Elector(lock, validity, lambda: 0.0, random.Random(len(self.candidates)))
        candidate = Candidate(name, elector, self.group)
        elector.unresponsive_s = lambda: candidate.unresponsive_s
        self.candidates.append(candidate)
        candidate.start()
        return candidate

    @property
    def leaders(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.leads]

    def observe(self) -> None:
        self.overlapped |= len(self.leaders) > 1
        self.renewed.set()
        self.renewed.clear()

    async def led_by(self, candidate: Candidate, *, within_s: float) -> float:
        """Return the time until it led."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(within_s):
            while self.leaders != [candidate]:
                await self.renewed.wait()
        return loop.time() - began

    def fail_requests(self, candidate: Candidate, **how: Any) -> None:
        """Make the lease requests of one candidate fail from now on."""
        fault = Fault(resource=LEASE_PATH, user_agent=candidate.name, times=None)
        self.lease_server.server.faults.add(attrs.evolve(fault, **how))


@asynccontextmanager
async def running(lease_server: LeaseServer) -> AsyncIterator[CandidateGroup]:
    tick_on_read()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        race = CandidateGroup(lease_server, group, stack)
        yield race
        for candidate in race.candidates:
            await candidate.kill()
        assert not race.overlapped


async def test_leader_keeps_leading_while_it_renews(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
        second = await race.join()
        await asyncio.sleep(100)
        assert race.leaders == [first]
        assert race.lease_server.spec["leaseTransitions"] == 0
        # One read for each observed renewal, and a few in between.
        assert race.lease_server.requests(second.name).count("get") <= 70
        assert race.lease_server.requests(second.name).count("update") == 0


async def test_released_lease_is_acquired_at_once(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
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
        first = await race.join()
        await race.led_by(first, within_s=1)
        second = await race.join()
        await asyncio.sleep(10)
        await first.stop()
        assert await race.led_by(second, within_s=4.5) > 0


async def test_dead_leader_is_succeeded_when_its_lease_expires(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
        second = await race.join()
        await asyncio.sleep(9)
        await first.kill()
        assert TIMING.renew_s < await race.led_by(second, within_s=17) <= TIMING.lease_s + 0.5


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"status": status.conflict(LEASES, KEY.name)}, id="conflicts"),
        pytest.param({"status": status.internal_error("broken")}, id="errors"),
        pytest.param({"status": status.too_many_requests("busy", 1)}, id="too many requests"),
        pytest.param({"reset": "before"}, id="resets"),
        pytest.param({"delay_s": 1e4}, id="hangs"),
    ],
)
async def test_leader_that_cannot_renew_stops_before_another_starts(
    lease_server: LeaseServer, how: dict[str, Any]
) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
        second = await race.join()
        await asyncio.sleep(5)
        race.fail_requests(first, **how)
        await race.led_by(second, within_s=TIMING.lease_s + 2)
        assert "was not renewed for 9 s" in str(first.loss)


async def test_failures_shorter_than_the_deadline_keep_the_lease(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
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
        first = await race.join()
        await race.led_by(first, within_s=1)
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
        first = await race.join()
        await race.led_by(first, within_s=1)
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
        first = await race.join()
        await race.led_by(first, within_s=1)
        race.fail_requests(first, verb="update", delay_s=1e4, times=1)
        await asyncio.sleep(TIMING.retry_s + 1)
        await first.stop()
        assert race.lease_server.holder == ""


@pytest.mark.parametrize("how", [{"reset": "before"}, {"status": status.internal_error("broken")}])
async def test_release_is_retried(lease_server: LeaseServer, how: dict[str, Any]) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
        race.fail_requests(first, times=3, **how)
        await first.stop()
        assert race.lease_server.holder == ""


async def test_forbidden_release_is_given_up_at_once(
    lease_server: LeaseServer,
) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
        race.fail_requests(first, status=StatusError(403, "Forbidden", "no"))
        began = asyncio.get_running_loop().time()
        await first.stop()
        assert asyncio.get_running_loop().time() - began < 0.1
        assert race.lease_server.holder == first.name


async def test_release_is_given_up_after_the_deadline(lease_server: LeaseServer) -> None:
    async with running(lease_server) as race:
        first = await race.join()
        await race.led_by(first, within_s=1)
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
