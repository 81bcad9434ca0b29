"""One process's operations on one lease: acquire, renew, release.

Each call is one attempt of one or a few requests. When to retry, and what a failure means, is up to
the elector.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import LEASES, ObjectKey
from dlctl.clock import Clock
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    ThrottledError,
    UnexpectedResponseError,
)
from dlctl.leaderelection import lease_record
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.metrics import Metrics

T = TypeVar("T")

logger = logging.getLogger(__name__)


class LeaseLostError(DlctlError):
    """The process no longer leads: it must not write, and exits."""


@attrs.define(eq=False)
class LeaseLock:
    """A candidate for a lease, or its holder.

    A success counts from when its request began, on the local monotonic clock: others see the
    renewal later than that. Request errors are raised unchanged; whether the lease was changed is
    then unknown, and the next attempt finds out.
    """

    client: Client
    key: ObjectKey
    identity: str
    timing: LeaseTiming
    clock: Clock
    metrics: Metrics
    # The lease as last read, and the time since which its contents have not changed.
    _lease: JSON = attrs.field(init=False, factory=dict)
    _observed_at: float = attrs.field(init=False, default=0.0)
    _written: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        if not self.identity:
            raise ValueError("expected an identity: an empty one means that the lease is free")
        self.metrics.leader_election_slowpath_total.labels(self.key.name)

    @property
    def available_in_s(self) -> float:
        """Return the seconds until the lease may be acquired, as last seen; at most 0 for now."""
        if lease_record.holder(self._lease) in ("", self.identity):
            return 0.0
        valid_s = lease_record.duration_s(self._lease, self.timing.lease_s)
        return self._observed_at + valid_s - self.clock.monotonic()

    async def acquire(self) -> float | None:
        """Acquire the lease if it is free; return since when it is held, or None."""
        lease = await self._read()
        try:
            if lease is None:
                # Deleted under its holder, it is still that one's, who creates it again.
                if self.available_in_s > 0:
                    return None
                return await self._create(lease_record.new_lease(self.key))
            self._observe(lease)
            return await self._update(lease) if self.available_in_s <= 0 else None
        except (AlreadyExistsError, ConflictError):
            # Another process was faster.
            return None

    async def renew(self) -> float:
        """Renew the lease; return since when it is renewed.

        The server checks that the lease is still as this process wrote it. Only if it rejects the
        write for any reason but overload, the lease is read. Raises LeaseLostError if another
        process, or none, holds it.
        """
        try:
            return await self._update(self._lease)
        except ThrottledError:
            raise
        except ApiError:
            self.metrics.leader_election_slowpath_total.labels(self.key.name).inc()
        lease = await self._read()
        if lease is None:
            # Deleted by a third party: it remains ours as long as nobody else creates it.
            lease = {**lease_record.new_lease(self.key), "spec": lease_record.spec(self._lease)}
            return await self._create(lease)
        if lease_record.holder(lease) != self.identity:
            holder = lease_record.holder(lease) or "nobody"
            raise LeaseLostError(f"the lease {self.key} was lost: it is held by {holder}")
        return await self._update(lease)

    async def release(self) -> None:
        """Release the lease if held, according to the server and not to local state.

        After an outage another process may hold it, and must not lose it.
        """
        while self._written:
            lease = await self._read()
            if lease is None or lease_record.holder(lease) != self.identity:
                return
            try:
                released = lease_record.released(lease, self.clock.now())
                await self._bounded(self.client.replace(LEASES, self.key, released, JSON))
            except ConflictError:
                continue
            return

    async def _read(self) -> JSON | None:
        try:
            return _checked(await self._bounded(self.client.get(LEASES, self.key, JSON)))
        except NotFoundError:
            return None

    async def _create(self, lease: JSON) -> float:
        body = self._acquired(lease)
        began = self.clock.monotonic()
        request = self.client.create(LEASES, self.key.namespace, body, JSON)
        self._observe(_checked(await self._bounded(request)))
        return began

    async def _update(self, lease: JSON) -> float:
        body = self._acquired(lease)
        began = self.clock.monotonic()
        request = self.client.replace(LEASES, self.key, body, JSON)
        self._observe(_checked(await self._bounded(request)))
        return began

    def _acquired(self, lease: JSON) -> JSON:
        self._written = True
        return lease_record.acquired(
            lease, self.identity, self.timing.lease_seconds, self.clock.now()
        )

    def _observe(self, lease: JSON) -> None:
        if lease_record.spec(lease) != lease_record.spec(self._lease):
            self._observed_at = self.clock.monotonic()
            if (now := lease_record.holder(lease)) != lease_record.holder(self._lease):
                logger.info("lease seen", extra={"lease": str(self.key), "holder": now})
        self._lease = lease

    async def _bounded(self, request: Awaitable[T]) -> T:
        # The client's own timeout is without the time that credentials take.
        async with asyncio.timeout(self.timing.request_timeout_s):
            return await request


def _checked(lease: JSON) -> JSON:
    """Return the lease; raise UnexpectedResponseError if a proxy has answered with something else.

    Such a response to a renewal is no renewal.
    """
    if lease.get("kind") != LEASES.kind:
        raise UnexpectedResponseError("the response is not a lease")
    return lease
