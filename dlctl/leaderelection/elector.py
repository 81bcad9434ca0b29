"""When to acquire, renew and release a lease; the LeaseLock does the requests.

Runs on an event loop that nothing else may block.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final, NoReturn

import attrs

from dlctl import logs
from dlctl.api.meta import LEASES
from dlctl.backoff import jittered
from dlctl.errors import describe
from dlctl.kube.errors import ForbiddenError, UnauthorizedError
from dlctl.leaderelection.lease_lock import LeaseLock, LeaseLostError
from dlctl.leaderelection.lease_timing import RETRY_JITTER
from dlctl.leaderelection.lease_validity import LeaseValidity

logger = logging.getLogger(__name__)

# All standbys see at the same moment that a lease is free; one attempt is enough.
ACQUIRE_JITTER_S: Final = 0.1


@attrs.define(eq=False)
class Elector:
    """Acquires the lease, renews it for as long as possible, and releases it.

    ``unresponsive_s`` returns for how long the main event loop has not responded. While it does not
    respond, the lease is not acquired, and after a while a held lease is given up: others could do
    the work.
    """

    lock: LeaseLock
    validity: LeaseValidity
    unresponsive_s: Callable[[], float]
    jitter: random.Random = attrs.field(factory=random.Random)
    _changed: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)

    async def acquire(self) -> None:
        """Return once this process holds the lease."""
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(self._watch_lease(), name="lease watch")
            while not await self._try_acquire():
                await self._pause()
            listening.cancel()

    async def renew(self) -> NoReturn:
        """Renew the lease until cancelled; raise LeaseLostError if a renewal fails for too long."""
        try:
            while True:
                await asyncio.sleep(self.lock.timing.retry_s)
                self._check_loop_liveness()
                await self._renew_in_time()
        except LeaseLostError:
            self.validity.revoke()
            raise

    async def release(self) -> None:
        """Release the lease if held; after the renew deadline, give up and let it expire."""
        try:
            async with asyncio.timeout(self.lock.timing.renew_s):
                await self._retry_release()
        except TimeoutError:
            logger.warning("lease left to expire", extra={"lease": str(self.lock.key)})

    async def _try_acquire(self) -> bool:
        if self.unresponsive_s() > 0:
            return False
        try:
            since = await self.lock.acquire()
        except Exception as error:  # noqa: BLE001 - the next attempt may succeed
            self._warn("lease not acquired", error)
            return False
        if since is None:
            return False
        self.validity.extend(since)
        return True

    async def _renew_in_time(self) -> None:
        try:
            async with asyncio.timeout(self.validity.remaining_s):
                await self._retry_renew()
        except TimeoutError:
            since_s = self.lock.timing.write_window_s
            message = f"the lease {self.lock.key} was not renewed for {since_s:g} s"
            raise LeaseLostError(message) from None

    async def _retry_renew(self) -> None:
        retry_s = self.lock.timing.retry_s
        loop = asyncio.get_running_loop()
        while True:
            next_at = loop.time() + retry_s
            try:
                since = await self.lock.renew()
            except LeaseLostError:
                raise
            except Exception as error:  # noqa: BLE001 - only the deadline decides
                self._warn("lease not renewed", error)
            else:
                self.validity.extend(since)
                return
            # An attempt that hung was pause enough.
            await asyncio.sleep(next_at - loop.time())

    async def _retry_release(self) -> None:
        while True:
            try:
                await self.lock.release()
            except (ForbiddenError, UnauthorizedError) as error:
                # Uninstalling removes our permissions before us.
                self._warn("lease not released", error)
                return
            except Exception as error:  # noqa: BLE001 - we exit in any case
                self._warn("lease not released", error)
            else:
                return
            await asyncio.sleep(self.lock.timing.retry_s / 4)

    def _check_loop_liveness(self) -> None:
        if (unresponsive_s := self.unresponsive_s()) > self.lock.timing.stall_s:
            raise LeaseLostError(f"the event loop has been blocked for {unresponsive_s:.1f} s")
        if unresponsive_s:
            logger.warning("event loop blocked", extra={"unresponsive_s": round(unresponsive_s, 1)})

    async def _pause(self) -> None:
        """Wait until the lease may have become free, or for a while."""
        longest_s = self._retry_s()
        spread_s = self.jitter.uniform(0, ACQUIRE_JITTER_S)
        free_in_s = self.lock.available_in_s
        try:
            async with asyncio.timeout(
                min(longest_s, free_in_s + spread_s) if free_in_s > 0 else longest_s
            ):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(spread_s)
        self._changed.clear()

    async def _watch_lease(self) -> None:
        """Wake the elector at every change of the lease.

        Only an optimization: without watches, the elector retries after its pauses.
        """
        key = self.lock.key
        selector = f"metadata.name={key.name}"
        while True:
            try:
                async with self.lock.client.watch(
                    LEASES, namespace=key.namespace, field_selector=selector
                ) as lines:
                    async for _ in lines:
                        self._changed.set()
            except Exception as error:  # noqa: BLE001 - only an optimization
                logger.debug("lease watch ended", extra={logs.ERROR: str(error)})
            await asyncio.sleep(self._retry_s())

    def _retry_s(self) -> float:
        return jittered(self.lock.timing.retry_s, RETRY_JITTER, self.jitter.random())

    def _warn(self, message: str, error: Exception) -> None:
        extra = {"lease": str(self.lock.key), logs.ERROR: describe(error)}
        logger.warning(message, extra=extra)
