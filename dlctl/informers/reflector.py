"""Keeps a StoreSyncer in sync with one resource: list, then watch, and list again if necessary.

Decides how to react to each error; keeps no objects. Follows the protocol of Kubernetes' own
clients, for which servers are tuned.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager, suppress
from typing import Final, Generic, TypeVar

import attrs

from dlctl.api.meta import Object, WatchEventType
from dlctl.clock import Clock, SystemClock
from dlctl.errors import DlctlError
from dlctl.informers.reflector_backoff import ReflectorBackoff
from dlctl.informers.reflector_metrics import ReflectorMetrics
from dlctl.informers.source import Listing, Source
from dlctl.informers.store_syncer import StoreSyncer, version_number
from dlctl.informers.watch_events import (
    Bookmark,
    MalformedEvent,
    ObjectEvent,
    UnknownEvent,
    WatchEvent,
)
from dlctl.informers.watch_stream import (
    WATCH_TIMEOUT_S,
    UselessWatchError,
    WatchStream,
    read_initial_events,
)
from dlctl.kube.errors import (
    ConnectRefusedError,
    ExpiredError,
    NotFoundError,
    RequestError,
    ThrottledError,
    TooLargeVersionError,
)

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

WARN_EVERY_S: Final = 10.0
_MAX_UNFINISHED_STREAMS: Final = 2
# The server is asked to end the watch before, but it may go on with bookmarks that end no list.
MAX_STREAMED_LIST_S: Final = WATCH_TIMEOUT_S[1] + 60.0
_FAILURES = (RequestError, UselessWatchError)


@attrs.define
class Position:
    """The progress of a reflector, in resource versions."""

    last: str = ""
    # The server cannot serve the last version: it is too old, or newer than the server's own.
    is_last_unavailable: bool = False
    # A list that the server could have served from its cache had pages: it does not use the cache,
    # or the whole list is too large to be read at once.
    is_paginated: bool = False

    @property
    def for_list(self) -> str:
        return "" if self.is_last_unavailable else self.last or "0"

    @property
    def for_watch(self) -> str:
        return "" if self.is_last_unavailable else self.last


class Reflector(Generic[T]):
    """Lists and watches one source until cancelled, whatever the server does.

    The StoreSyncer gets the objects of a list at once, and events in order. After a gap it gets
    another list. Streamed lists are tried first: they cost the server least.
    """

    def __init__(
        self,
        source: Source[T],
        syncer: StoreSyncer[T],
        *,
        metrics: ReflectorMetrics,
        clock: Clock | None = None,
        backoff: ReflectorBackoff | None = None,
    ) -> None:
        self._source = source
        self._syncer = syncer
        self._metrics = metrics
        self._clock = clock or SystemClock()
        self._backoff = backoff or ReflectorBackoff(self._clock)
        self.position = Position()
        # False while the server does not serve the resource.
        self.served = True
        metrics.set_version_source(lambda: version_number(self.position.last))

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except NotFoundError as error:
                self._not_served(error)
                await self._backoff.pause()
            except _FAILURES as error:
                logger.warning("list and watch ended", extra=self._extra(error))
                later_s = error.retry_after_s if isinstance(error, ThrottledError) else 0.0
                await self._backoff.pause(later_s)
            except Exception:
                # The resource is listed again after any response of the server.
                resource = self._source.resource.group_resource
                logger.exception("list and watch failed", extra={"resource": resource})
                await self._backoff.pause()

    def _not_served(self, error: NotFoundError) -> None:
        if self.served:
            message = "the server does not serve the resource: is its CRD installed?"
            logger.warning(message, extra=self._extra(error))
        self.served = False

    async def _list_and_watch(self) -> None:
        try:
            stream = await self._stream_list()
        except NotFoundError:
            raise
        except _FAILURES as error:
            # For example, the server does not support streamed lists; it may do so next time.
            logger.info("falling back to a paginated list", extra=self._extra(error))
            stream = None
        if stream is None:
            await self._list()
        await self._watch(stream)

    async def _list(self) -> None:
        """Sync the store with a list."""
        started = self._clock.monotonic()
        version = self.position.for_list
        try:
            listing = await self._read(version)
        except (ExpiredError, TooLargeVersionError):
            self.position.is_last_unavailable = True
            listing = await self._read(self.position.for_list)
        if version == "0" and listing.pages > 1:
            self.position.is_paginated = True
        await self._replace(listing)
        self._metrics.listed(len(listing.items), self._clock.monotonic() - started)

    async def _read(self, version: str) -> Listing[T]:
        return await self._source.list(
            version, paginated=self.position.is_paginated or version in ("", "0")
        )

    async def _replace(self, listing: Listing[T]) -> None:
        await self._syncer.replace(listing.items, listing.malformed, listing.resource_version)
        self.position.last = listing.resource_version
        self.position.is_last_unavailable = False
        self.served = True

    async def _stream_list(self) -> WatchStream[T] | None:
        """Sync the store with the initial events of a watch; return the watch, to continue it.

        Return None if it ends too often before the end of these, which are useless without the
        rest: a busy server ends watches that it cannot serve fast enough, but no lists.
        """
        ended = 0
        while ended < _MAX_UNFINISHED_STREAMS:
            version = self.position.for_watch
            try:
                if stream := await self._stream_once(version):
                    return stream
                ended += 1
            except (ExpiredError, TooLargeVersionError):
                self.position.is_last_unavailable = True
                if not version:
                    await self._backoff.pause()
            except (ThrottledError, ConnectRefusedError) as error:
                await self._backoff.pause_after(error)
        extra = {"resource": self._source.resource.group_resource}
        logger.info("falling back to a list: streamed ones ended early", extra=extra)
        return None

    async def _stream_once(self, version: str) -> WatchStream[T] | None:
        async with AsyncExitStack() as stack:
            stream = await WatchStream.open(self._source, self._clock, version, initial=True)
            await stack.enter_async_context(stream)
            started = self._clock.monotonic()
            listing = None
            with _warn_periodically(self._source.resource.group_resource), suppress(TimeoutError):
                async with asyncio.timeout(MAX_STREAMED_LIST_S):
                    listing = await read_initial_events(stream)
            if listing is None:
                return None
            await self._replace(listing)
            stream.unordered = False
            self._metrics.listed(len(listing.items), self._clock.monotonic() - started)
            stack.pop_all()
            return stream

    async def _watch(self, stream: WatchStream[T] | None) -> None:
        """Watch until an error requires a list; after a normal end, watch again."""
        was_down = False
        while True:
            try:
                version = self.position.for_watch
                if was_down:
                    # It may be back with a backup: a watch would miss what happens until it has
                    # reached the version again.
                    await self._source.check_reached(version)
                    was_down = False
                if stream is None:
                    stream = await WatchStream.open(self._source, self._clock, version)
                async with stream:
                    await self._follow(stream)
            except (ThrottledError, ConnectRefusedError) as error:
                was_down = was_down or isinstance(error, ConnectRefusedError)
                await self._backoff.pause_after(error)
            stream = None

    async def _follow(self, stream: WatchStream[T]) -> None:
        unordered = stream.unordered
        try:
            async with aclosing(stream.read()) as events:
                async for event in events:
                    unordered = unordered and _is_added(event)
                    if event.version and not unordered:
                        self.position.last = event.version
                        self._syncer.set_version(event.version)
                    self._apply(event)
        finally:
            self._metrics.watched(stream.event_count, stream.duration_s, short=stream.is_short)

    def _apply(self, event: WatchEvent[T]) -> None:
        match event:
            case ObjectEvent():
                self._syncer.apply(event.type, event.object)
            case MalformedEvent():
                self._syncer.apply_malformed(event.type, event.object)
            case UnknownEvent():
                extra = {"resource": self._source.resource.group_resource, "type": event.type}
                logger.warning("skipped a watch event of an unknown type", extra=extra)
            case Bookmark():
                # A bookmark contains only a version.
                pass

    def _extra(self, error: DlctlError) -> dict[str, str]:
        return {"resource": self._source.resource.group_resource, "error": str(error)}


@contextmanager
def _warn_periodically(resource: str) -> Iterator[None]:
    """Log every few seconds that the block is still running."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def remind() -> None:
        nonlocal timer
        if timer:
            logger.warning(
                "still waiting for the end of the initial events", extra={"resource": resource}
            )
        timer = loop.call_later(WARN_EVERY_S, remind)

    remind()
    try:
        yield
    finally:
        if timer:
            timer.cancel()


def _is_added(event: WatchEvent[T]) -> bool:
    return isinstance(event, ObjectEvent | MalformedEvent) and event.type is WatchEventType.ADDED
