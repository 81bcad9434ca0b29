"""Candidates for one lease, on an embedded server, in simulated time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from dlctl.kube.client import Client
from dlctl.leaderelection.elector import Elector
from dlctl.leaderelection.lease_lock import LeaseLock, LeaseLostError
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.lease_validity import LeaseValidity
from dlctl.local.apiserver.faults import Fault
from dlctl.metrics import Metrics
from tests.leaderelection.lease_server import KEY, LEASE_PATH, FakeWatchdog, LeaseServer
from tests.support.timing import LoopClock, tick_on_read

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

    async def first_leader(self) -> Candidate:
        """Return the first candidate, once it leads."""
        first = await self.join()
        await self.led_by(first, within_s=1)
        return first

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
