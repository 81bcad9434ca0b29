"""Faults on demand, for tests: refusals, resets, delays, watches that break, lists that lag.

A fault is taken by the requests that match it, as often as it says. A server without faults pays
one comparison per request.
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

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@attrs.frozen(kw_only=True)
class Fault:
    """What goes wrong, for which requests; conditions that are empty hold for all.

    ``verb`` may be "write" for all that change something. ``status`` is answered instead of doing
    anything; on a watch ``in_stream`` makes it an ERROR event. ``reset`` aborts the connection
    before or after the request is done. ``cut_after`` ends a watch after so many events,
    ``silent`` lets it hang without a word after the initial ones, ``lag_s`` delays its events.
    ``stale_by`` shows a list that need not be fresh as it was so many revisions ago.
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
    delay_s: float = 0.0
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
    """The faults that are still to happen, in the order they were added.

    ``taken`` counts those that did. With equal seeds and requests, equal faults happen.
    """

    def __init__(self, seed: int = 0) -> None:
        self.matched = 0
        self._random = random.Random(seed)
        # Each with how often it may still be taken; None is always.
        self._pending: list[tuple[Fault, int | None]] = []

    def add(self, fault: Fault) -> None:
        self._pending.append((fault, fault.times))

    def clear(self) -> None:
        self._pending.clear()

    def match(self, request: ApiRequest) -> Fault | None:
        """Return the fault of this request, if it has one; it counts as having happened."""
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
    """Do what goes wrong before anything is done; return if something is to be done at all."""
    if fault.delay_s:
        await asyncio.sleep(fault.delay_s)
    if fault.reset == "before":
        raise abort(request)
    if fault.status and not fault.in_stream:
        raise fault.status


def abort(request: web.BaseRequest) -> ConnectionResetError:
    """Abort the connection, and return what to raise."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("a fault was asked for")


async def faulty_stream(chunks: AsyncIterator[bytes], fault: Fault) -> AsyncIterator[bytes]:
    """Yield a stream as the fault has it."""
    if fault.status:
        body = msgspec.json.encode(fault.status.body())
        yield b'{"type":"ERROR","object":%b}\n' % body
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
            # Until the client gives up: that is the fault.
            await asyncio.Event().wait()
