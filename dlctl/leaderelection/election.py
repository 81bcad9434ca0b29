"""The election for the rest of the process: a fence for its writes, and a block to lead in.

The elector has a thread with its own event loop and HTTP session, so that nothing that blocks the
reconcilers can lose the lease, or keep it too long.
"""

import asyncio
import logging
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager

import attrs
from prometheus_client import Gauge

from dlctl.api.meta import ObjectKey
from dlctl.clock import BoottimeClock, Clock
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.leaderelection.elector import Elector
from dlctl.leaderelection.lease_lock import LeaseLock
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.lease_validity import LeaseValidity
from dlctl.leaderelection.loop_liveness import LoopLiveness
from dlctl.leaderelection.watchdog import ProcessWatchdog, Watchdog
from dlctl.metrics import Metrics
from dlctl.tasks import unwrap_exception_groups

logger = logging.getLogger(__name__)


def own_identity() -> str:
    """Return a name unique to this process and this start."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@attrs.define(eq=False)
class Election:
    """The candidacy of this process for a lease; used once.

    Once the lease was not renewed in time, :meth:`may_write` stays False; the process then exits,
    in order if that is fast, otherwise by the watchdog.
    """

    # Called on the elector's event loop, because credentials belong to one.
    connect: Callable[[], Awaitable[ClusterConfig]]
    name: str
    # Default: the namespace of the configuration; in a cluster, the pod's own.
    namespace: str = ""
    timing: LeaseTiming = attrs.field(factory=LeaseTiming)
    metrics: Metrics = attrs.field(factory=Metrics)
    clock: Clock = attrs.field(factory=BoottimeClock)
    watchdog: Watchdog = attrs.field(factory=ProcessWatchdog)
    identity: str = attrs.field(factory=own_identity)
    _validity: LeaseValidity = attrs.field(init=False)
    _status: Gauge = attrs.field(init=False)
    # Shared between the two threads: each is set by one and awaited by the other.
    _acquired: Future[None] = attrs.field(init=False, factory=Future)
    _ended: Future[None] = attrs.field(init=False, factory=Future)
    _withdrawn: Future[None] = attrs.field(init=False, factory=Future)

    def __attrs_post_init__(self) -> None:
        self._validity = LeaseValidity(self.timing, self.clock, self.watchdog)
        self._status = self.metrics.leader_election_master_status.labels(self.name)
        self._status.set(0)
        for future in (self._acquired, self._ended, self._withdrawn):
            # From here on, cancelling a waiter does not cancel the future.
            future.set_running_or_notify_cancel()

    def may_write(self) -> bool:
        return self._validity.may_write()

    def healthy(self) -> bool:
        return self._validity.healthy()

    @asynccontextmanager
    async def leading(self, stop: asyncio.Event) -> AsyncIterator[bool]:
        liveness = LoopLiveness(asyncio.get_running_loop(), self.clock.monotonic)
        # A daemon: the interpreter does not wait for it; it is awaited below, or hangs.
        threading.Thread(
            target=self._run, args=(liveness,), name="leader election", daemon=True
        ).start()
        try:
            with unwrap_exception_groups():
                async with asyncio.TaskGroup() as group:
                    watching = group.create_task(self._raise_failure(), name="leadership")
                    yield await self._acquired_before(stop)
                    watching.cancel()
        finally:
            self._withdrawn.set_result(None)
            # The elector limits this time, and the watchdog limits the elector.
            await asyncio.wrap_future(self._ended)

    async def _acquired_before(self, stop: asyncio.Event) -> bool:
        acquired = asyncio.wrap_future(self._acquired)
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(stop.wait(), name="stop")
            acquired.add_done_callback(lambda _: stopped.cancel())
        return not stop.is_set()

    async def _raise_failure(self) -> None:
        """Raise the failure of the elector's thread, if any."""
        await asyncio.wrap_future(self._ended)

    def _run(self, liveness: LoopLiveness) -> None:
        """Run the elector's thread."""
        try:
            asyncio.run(self._elect(liveness))
        except BaseException as error:  # noqa: BLE001 - re-raised in the other thread
            self._validity.revoke()
            self._ended.set_exception(error)
        else:
            self._validity.released()
            self._ended.set_result(None)

    async def _elect(self, liveness: LoopLiveness) -> None:
        config = await self.connect()
        key = ObjectKey(self.namespace or config.namespace, self.name)
        async with Client(
            config,
            user_agent="dlctl/leader-election",
            metrics=self.metrics,
            request_timeout_s=self.timing.request_timeout_s,
            # The elector retries: an overloaded server asks for longer pauses than a lease lasts.
            max_retries=0,
        ) as client:
            lock = LeaseLock(client, key, self.identity, self.timing, self.clock, self.metrics)
            elector = Elector(lock, self._validity, liveness.probe)
            with unwrap_exception_groups():
                async with asyncio.TaskGroup() as group:
                    serving = group.create_task(self._serve(elector), name="elector")
                    await asyncio.wrap_future(self._withdrawn)
                    serving.cancel()
            # All writers have ended by now, as :meth:`leading` guarantees.
            self._validity.resign()
            await elector.release()

    async def _serve(self, elector: Elector) -> None:
        await elector.acquire()
        logger.info("leading", extra={"identity": self.identity})
        self._status.set(1)
        self._acquired.set_result(None)
        try:
            await elector.renew()
        finally:
            self._status.set(0)
