"""Watches: the changes of one resource, sent to a client line by line.

With a selector, objects appear and disappear as they start and stop matching. The caller sends the
lines; nothing here knows HTTP.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Final

import attrs
import msgspec

from dlctl.api.meta import WatchEventType
from dlctl.local.apiserver import status
from dlctl.local.apiserver.endpoints.representations import (
    METADATA_KIND,
    Presenter,
    Representation,
    in_parts,
)
from dlctl.local.apiserver.endpoints.selectors import Selector
from dlctl.local.apiserver.request_options import ListRequestOptions, parse_object_version
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import (
    StorageEvent,
    StoredObject,
    watch_event_line,
)

BOOKMARK_INTERVAL_S: Final = 60.0
# Before a watch times out, it sends a last bookmark.
_LAST_BOOKMARK_S: Final = 2.0
# Without a timeout in the request, the real server takes 30 to 60 minutes.
_TIMEOUT_S: Final = 30 * 60.0


@attrs.define
class Watch:
    """One watch of one client."""

    storage: Storage
    presenter: Presenter
    namespace: str
    selector: Selector
    options: ListRequestOptions
    bookmark_interval_s: float = BOOKMARK_INTERVAL_S
    # An invalid version is rejected before the stream begins.
    _since: int = attrs.field(init=False)
    _sent: int = attrs.field(init=False, default=0)

    @_since.default
    def _(self) -> int:
        return parse_object_version(self.options.resource_version, "resourceVersion")

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield parts of the stream, each of whole lines, until the watch times out or is ended."""
        resource = self.selector.resource
        changed = asyncio.Event()
        since = self._since
        initial = self._wants_initial(since)
        try:
            if self.options.send_initial_events and since > self.storage.revision:
                raise status.too_large_version(since, self.storage.revision)
            self._sent = since if since and not initial else self.storage.revision
            watcher = self.storage.watch(resource, self._sent, changed.set)
            # As of that revision: clients may read slowly.
            present = self.storage.objects(resource, self.namespace) if initial else ()
        except status.StatusError as error:
            yield watch_event_line("ERROR", msgspec.json.encode(error.body()))
            return
        try:
            # Even if empty: the headers must be sent at once.
            for part in in_parts(itertools.chain([b""], self._initial(present) if initial else ())):
                yield part
            async for wait in self._wakeups(changed):
                changed.clear()
                if watcher.overflowed:
                    return
                # Before the yield, during which the last changes may arrive.
                ended = watcher.ended
                lines = self._event_lines(watcher.drain())
                for part in in_parts(itertools.chain(lines, [wait])):
                    yield part
                if ended:
                    return
        finally:
            self.storage.unwatch(resource, watcher)

    def _wants_initial(self, since: int) -> bool:
        if self.options.send_initial_events is not None:
            return self.options.send_initial_events
        return since == 0

    def _initial(self, present: Iterable[StoredObject]) -> Iterator[bytes]:
        for stored in present:
            if self.selector.matches(stored):
                yield watch_event_line(WatchEventType.ADDED, self.presenter.one(stored))
        if self.options.send_initial_events and self.options.bookmarks:
            yield self._bookmark(self._sent, {"k8s.io/initial-events-end": "true"})

    async def _wakeups(self, changed: asyncio.Event) -> AsyncIterator[bytes]:
        """Wake up for changes and bookmarks; yield the bookmark to send after the changes."""
        loop = asyncio.get_running_loop()
        timeout_s = self.options.timeout_s or _TIMEOUT_S
        end = loop.time() + timeout_s
        last_bookmark = end - _LAST_BOOKMARK_S
        next_bookmark = self._next_bookmark(loop.time(), last_bookmark)
        while (now := loop.time()) < end:
            bookmark = b""
            if self.options.bookmarks and now >= next_bookmark:
                next_bookmark = self._next_bookmark(now, last_bookmark)
                # A watch from a future version has none until that is reached.
                if self.storage.revision >= self._sent:
                    bookmark = self._bookmark(self.storage.revision)
            yield bookmark
            until = min(end, next_bookmark) if self.options.bookmarks else end
            try:
                async with asyncio.timeout_at(until):
                    await changed.wait()
            except TimeoutError:
                continue

    def _next_bookmark(self, now: float, last_bookmark: float) -> float:
        regular = now + self.bookmark_interval_s
        return last_bookmark if now < last_bookmark < regular else regular

    def _bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        resource = self.selector.resource
        kind, api_version = resource.kind, resource.api_version
        if self.presenter.representation is Representation.METADATA:
            kind, api_version = METADATA_KIND
        meta: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            meta["annotations"] = annotations
        body = {"kind": kind, "apiVersion": api_version, "metadata": meta}
        return watch_event_line("BOOKMARK", msgspec.json.encode(body))

    def _event_lines(self, changes: Iterable[StorageEvent]) -> Iterator[bytes]:
        for change in changes:
            # A future version is waited for.
            if change.revision <= self._sent or not self._in_namespace(change):
                continue
            type_ = visible_event(change, self.selector)
            if type_ is not None:
                yield watch_event_line(type_, self.presenter.one(change.shown_object(type_)))

    def _in_namespace(self, change: StorageEvent) -> bool:
        return not self.namespace or change.key.namespace == self.namespace


def visible_event(change: StorageEvent, selector: Selector) -> WatchEventType | None:
    """Return the change as an observer of the selected objects sees it; None if invisible."""
    before = selector.matches(change.old)
    if selector.matches(change.new):
        return WatchEventType.MODIFIED if before else WatchEventType.ADDED
    return WatchEventType.DELETED if before else None
