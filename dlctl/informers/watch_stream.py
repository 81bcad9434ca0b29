"""One watch that is open: its events, how long it has lasted, and that it is closed once."""

import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Final, Generic, Self, TypeVar

import attrs

from dlctl.api.meta import Object, ObjectKey
from dlctl.clock import Clock
from dlctl.errors import DlctlError
from dlctl.informers.source import Listing, Source
from dlctl.informers.watch_events import (
    Bookmark,
    Event,
    EventDecoder,
    EventType,
    MalformedEvent,
    ObjectEvent,
)
from dlctl.kube.decoding import Malformed
from dlctl.kube.errors import ApiError, UnreachableError

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

SHORT_WATCH_S: Final = 1.0
# How long the server is asked to keep a watch open: spread, so that not all come back at once.
WATCH_TIMEOUT_S: Final = (300, 600)


class ShortWatchError(DlctlError):
    """The server ended a watch at once and without an event: asking again would only spin."""


@attrs.define(kw_only=True)
class WatchStream(Generic[T]):
    """The events of one watch; leaving its ``async with`` block closes the connection."""

    # Opened without a version, the server first sends what there is, in no order of versions;
    # what comes after the end of that is in order.
    unordered: bool
    event_count: int = 0
    _resource: str
    _frames: AsyncIterator[bytes]
    _decoder: EventDecoder[T]
    _clock: Clock
    _started: float
    _stack: AsyncExitStack

    @classmethod
    async def open(
        cls, source: Source[T], clock: Clock, version: str, *, initial: bool = False
    ) -> Self:
        """Watch from a version on; ``initial`` asks for what there is at it first."""
        async with AsyncExitStack() as stack:
            watch = source.client.watch(
                source.resource,
                **source.selection,
                resource_version=version,
                resource_version_match="NotOlderThan" if initial else None,
                send_initial_events=initial or None,
                bookmarks=True,
                timeout_s=random.randint(*WATCH_TIMEOUT_S),
            )
            lines = await stack.enter_async_context(watch)
            return cls(
                unordered=version in ("", "0"),
                resource=source.resource.group_resource,
                frames=lines,
                decoder=EventDecoder(source.as_),
                clock=clock,
                started=clock.monotonic(),
                stack=stack.pop_all(),
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def duration_s(self) -> float:
        return self._clock.monotonic() - self._started

    @property
    def is_short(self) -> bool:
        return not self.event_count and self.duration_s < SHORT_WATCH_S

    async def read(self) -> AsyncGenerator[Event[T]]:
        """Yield the events until the server ends the watch, or the connection breaks.

        The two are the same: what was missed is sent again from the last version. An ERROR event
        is raised, and so is ShortWatchError where the watch has been of no use.
        """
        try:
            async for line in self._frames:
                event = self._decoder.decode(line)
                if isinstance(event, ApiError):
                    raise event
                self.event_count += 1
                yield event
        except UnreachableError as error:
            # Raised by the lines only: nobody throws anything into this generator.
            extra = {"resource": self._resource, "error": str(error)}
            logger.info("the connection of a watch broke", extra=extra)
        if self.is_short:
            raise ShortWatchError("the server ended the watch at once")


async def read_initial_events(stream: WatchStream[T]) -> Listing[T] | None:
    """Return the objects that a watch sends at its start; None if it ends before it has sent all.

    Only a bookmark that says so marks the end of them. Changes in between are part of the result.
    """
    objects: dict[ObjectKey, T] = {}
    malformed = dict[ObjectKey | None, Malformed]()
    async with aclosing(stream.read()) as events:
        async for event in events:
            match event:
                case ObjectEvent(type=EventType.DELETED, object=obj):
                    objects.pop(obj.metadata.key, None)
                case ObjectEvent(object=obj):
                    objects[obj.metadata.key] = obj
                    malformed.pop(obj.metadata.key, None)
                case MalformedEvent(type=EventType.DELETED, object=broken) if broken.key:
                    objects.pop(broken.key, None)
                case MalformedEvent(object=broken):
                    malformed[broken.key] = broken
                case Bookmark(initial_end=True, version=version):
                    return Listing(list(objects.values()), list(malformed.values()), version)
                case _:
                    continue
    return None
