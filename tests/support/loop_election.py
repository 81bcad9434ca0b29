"""An election on the event loop of a test, with all of production but its thread and process."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.clock import Clock
from dlctl.kube.client import Client
from dlctl.leaderelection.elector import Elector
from dlctl.leaderelection.lease_lock import LeaseLock
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.lease_validity import LeaseValidity
from dlctl.metrics import Metrics
from dlctl.tasks import unwrap_exception_groups

TIMING: Final = LeaseTiming()


@attrs.define(eq=False)
class LoopElection:
    """The candidacy of a controller; used once.

    Killed, it ends without a release, as a process does; so does one whose watchdog fires.
    """

    client: Client
    key: ObjectKey
    identity: str
    clock: Clock
    is_killed: bool = False
    _validity: LeaseValidity = attrs.field(init=False)
    _running: asyncio.Task[None] | None = attrs.field(init=False, default=None)
    _timer: asyncio.TimerHandle | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._validity = LeaseValidity(TIMING, self.clock, self)

    def may_write(self) -> bool:
        return not self.is_killed and self._validity.may_write()

    def healthy(self) -> bool:
        return self._validity.healthy()

    def kill(self) -> None:
        self.is_killed = True
        if self._running is not None:
            self._running.cancel()

    def arm(self, seconds: float) -> None:
        self.disarm()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.kill)

    def disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @asynccontextmanager
    async def leading(self, stop: asyncio.Event) -> AsyncIterator[bool]:
        self._running = asyncio.current_task()
        lock = LeaseLock(self.client, self.key, self.identity, TIMING, self.clock, Metrics())
        elector = Elector(lock, self._validity, lambda: 0.0, random.Random(self.identity))
        async with self.client:
            try:
                with unwrap_exception_groups():
                    async with asyncio.TaskGroup() as group:
                        acquiring = group.create_task(elector.acquire())
                        stopping = group.create_task(stop.wait())
                        await asyncio.wait((acquiring, stopping), return_when="FIRST_COMPLETED")
                        stopping.cancel()
                        acquiring.cancel()
                        renewing = group.create_task(elector.renew())
                        yield not stop.is_set()
                        renewing.cancel()
            finally:
                if not self.is_killed:
                    self._validity.resign()
                    await elector.release()
                self._validity.released()
