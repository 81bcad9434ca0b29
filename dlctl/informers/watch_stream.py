"""One open watch: its events, its duration, and closing it once."""

import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Final, Generic, Self, TypeVar

import attrs

from dlctl.api.interning import Interner
from dlctl.api.meta import Object, ObjectKey, WatchEventType
from dlctl.clock import Clock
from dlctl.errors import DlctlError
from dlctl.informers.source import Listing, Source
from dlctl.informers.watch_events import (
    Bookmark,
    EventDecoder,
    MalformedEvent,
    ObjectEvent,
    WatchEvent,
)
from dlctl.kube.decoding import Malformed
from dlctl.kube.errors import ApiError, UnreachableError

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

SHORT_WATCH_S: Final = 1.0
# Bookmarks arrive about once a minute: without two of them, a watch waits for a version that the
# server has not reached, as after its etcd was restored from a backup.
SILENT_WATCH_S: Final = 120.0
# Range of the timeout requested from the server: random, so that watches do not end together.
WATCH_TIMEOUT_S: Final = (300, 600)


class UselessWatchError(DlctlError):
    """A watch ended at once or was silent for long, without any event: a list is due."""


@attrs.define(kw_only=True)
class WatchStream(Generic[T]):
    """The events of one watch; leaving its ``async with`` block closes the connection."""

    # Opened without a version, the server first sends the existing objects in no order of versions;
    # later events are in order.
    unordered: bool
    event_count: int = 0
    _resource: str
    _frames: AsyncIterator[bytes]
    _decoder: EventDecoder[T]
    _interner: Interner
    _clock: Clock
    _started: float
    _stack: AsyncExitStack

    @classmethod
    async def open(
        cls, source: Source[T], clock: Clock, version: str, *, initial: bool = False
    ) -> Self:
        """Watch from a version on; ``initial`` requests the existing objects first."""
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
                interner=source.interner,
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

    @property
    def is_silent(self) -> bool:
        return not self.event_count and self.duration_s >= SILENT_WATCH_S

    async def read(self) -> AsyncGenerator[WatchEvent[T]]:
        """Yield the events until the server ends the watch, or the connection breaks.

        Both are equivalent: missed events are sent again from the last version. Raises ERROR
        events, and UselessWatchError after a watch that was short or silent.
        """
        try:
            async for line in self._frames:
                event = self._decoder.decode(line)
                if isinstance(event, ApiError):
                    raise event
                self.event_count += 1
                if isinstance(event, ObjectEvent):
                    event = ObjectEvent(event.type, event.object.for_store(self._interner))
                yield event
        except UnreachableError as error:
            # Raised by the lines only: nothing is thrown into this generator.
            extra = {"resource": self._resource, "error": str(error)}
            logger.info("watch connection broke", extra=extra)
        if self.is_short:
            raise UselessWatchError("the server ended the watch at once")
        if self.is_silent:
            raise UselessWatchError("the watch has brought no event, not even a bookmark")


async def read_initial_events(stream: WatchStream[T]) -> Listing[T] | None:
    """Return the initial objects of a watch; None if it ends before all were sent.

    Only an annotated bookmark marks their end. Changes in between are part of the result.
    """
    objects = dict[ObjectKey | None, T]()
    malformed = dict[ObjectKey | None, Malformed]()
    async with aclosing(stream.read()) as events:
        async for event in events:
            match event:
                case ObjectEvent() | MalformedEvent() if event.type is WatchEventType.DELETED:
                    objects.pop(event.object.key, None)
                    malformed.pop(event.object.key, None)
                case ObjectEvent(object=obj):
                    objects[obj.key] = obj
                    malformed.pop(obj.key, None)
                case MalformedEvent(object=broken):
                    malformed[broken.key] = broken
                case Bookmark(initial_end=True, version=version):
                    return Listing(list(objects.values()), list(malformed.values()), version)
                case _:
                    continue
    return None
