"""Fault injection for tests: error responses, resets, delays, broken watches, stale lists.

A fault applies to the requests that match it, as many times as it says. Without faults, a request
costs one comparison.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Literal

import attrs
import msgspec
from aiohttp import web

from dlctl.local.apiserver.requests import ApiRequest
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.stored_objects import watch_event_line

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@attrs.frozen(kw_only=True)
class Fault:
    """A fault and the requests it applies to; empty conditions match everything.

    ``verb`` may be "write" for all writes. ``status`` is returned instead of processing the
    request; on a watch, ``in_stream`` makes it an ERROR event. ``reset`` aborts the connection
    before or after the request is processed; ``answer`` is a code and a body that are returned
    once it is processed, in place of the response; ``unanswered`` sends no response. ``late_s``
    aborts the connection at once, and processes the request that many seconds later, as a slow
    server behind a proxy does.
    ``cut_after`` ends a watch after this many events, ``silent`` stops it after the initial ones
    without closing it, ``lag_s`` delays its events. ``stale_by`` returns a list that need not be
    fresh as of this many revisions ago.
    """

    verb: str = ""
    resource: str = ""
    subresource: str | None = None
    namespace: str = ""
    name: str = ""
    user_agent: str = ""
    times: int | None = 1
    probability: float = 1.0

    status: StatusError | None = None
    in_stream: bool = False
    reset: Literal["before", "after"] | None = None
    answer: tuple[int, bytes] | None = None
    unanswered: bool = False
    delay_s: float = 0.0
    late_s: float = 0.0
    cut_after: int | None = None
    silent: bool = False
    lag_s: float = 0.0
    stale_by: int = 0

    def matches(self, request: ApiRequest) -> bool:
        target = request.info
        return (
            (self.verb in ("", request.verb) or (self.verb == "write" and request.verb in _WRITES))
            and self.resource in ("", target.qualified)
            and self.subresource in (None, target.subresource)
            and self.namespace in ("", target.namespace)
            and self.name in ("", target.name)
            and self.user_agent in request.user_agent
        )


class Faults:
    """The pending faults, in the order they were added.

    ``matched`` counts those that happened. Equal seeds and requests give equal faults.
    """

    def __init__(self, seed: int = 0) -> None:
        self.matched = 0
        self._random = random.Random(seed)
        # Each with the number of times it may still happen; None is unlimited.
        self._pending: list[tuple[Fault, int | None]] = []

    def add(self, fault: Fault) -> None:
        self._pending.append((fault, fault.times))

    def clear(self) -> None:
        self._pending.clear()

    def match(self, request: ApiRequest) -> Fault | None:
        """Return the fault of this request, if any; it counts as having happened."""
        for index, (fault, times) in enumerate(self._pending):
            if not fault.matches(request):
                continue
            if fault.probability < 1 and self._random.random() >= fault.probability:
                continue
            if times is not None and times <= 1:
                del self._pending[index]
            elif times is not None:
                self._pending[index] = (fault, times - 1)
            self.matched += 1
            return fault
        return None


async def inject(request: web.BaseRequest, fault: Fault) -> None:
    """Apply what happens before the request is processed; return if it is processed at all."""
    if fault.delay_s:
        await asyncio.sleep(fault.delay_s)
    if fault.reset == "before":
        raise abort(request)
    if fault.status and not fault.in_stream:
        raise fault.status


async def end(request: web.BaseRequest, fault: Fault) -> web.Response | None:
    """Apply what happens after the request is processed; return the response instead of its own."""
    if fault.reset == "after":
        raise abort(request)
    if fault.unanswered:
        # The client gives up in the end.
        await asyncio.Event().wait()
    if fault.answer is None:
        return None
    code, body = fault.answer
    return web.Response(status=code, body=body, content_type="application/json")


def abort(request: web.BaseRequest) -> ConnectionResetError:
    """Abort the connection; return the error to raise."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("injected fault")


async def faulty_stream(chunks: AsyncIterator[bytes], fault: Fault) -> AsyncIterator[bytes]:
    """Yield the chunks of a stream with the fault applied."""
    if fault.status:
        yield watch_event_line("ERROR", msgspec.json.encode(fault.status.body()))
        return
    sent = 0
    async for chunk in chunks:
        if fault.lag_s:
            await asyncio.sleep(fault.lag_s)
        for line in chunk.splitlines(keepends=True) or [b""]:
            if fault.cut_after is not None and sent >= fault.cut_after:
                return
            yield line
            sent += bool(line)
        if fault.silent:
            # The fault: silent until the client gives up.
            await asyncio.Event().wait()
