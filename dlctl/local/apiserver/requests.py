"""Requests and responses, as values between HTTP and the verbs.

Nothing is decided here; a :class:`RequestInfo` says what a request is about.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import attrs
from aiohttp import web

from dlctl.local.apiserver.request_info import RequestInfo
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.users import ADMIN, User


@attrs.frozen
class ApiRequest:
    """One request, as far as verbs are concerned."""

    verb: str
    info: RequestInfo
    query: Mapping[str, str]
    dry_run: Sequence[str] = ()
    # The command to run in a container, for exec.
    command: Sequence[str] = ()
    # The ports of a pod to connect to, for some clients of port-forward.
    ports: Sequence[str] = ()
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    user: User = ADMIN
    # Set only by a fault: how many revisions old a list may be.
    stale_by: int = 0
    # Messages about the body, recorded while it is read.
    repeated_keys: list[str] = attrs.field(factory=list)
    # Recorded by the verb; sent with its response, also with an error.
    warnings: list[str] = attrs.field(factory=list)


@attrs.frozen
class BufferedResponse:
    """A body that is sent at once."""

    body: bytes
    code: int = 200
    content_type: str = "application/json"


@attrs.frozen
class StreamedResponse:
    """A body that is sent as it is produced."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"


class ByteStream(Protocol):
    """Bytes in both directions; reading returns none at the end."""

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...


@attrs.frozen
class UpgradeResponse:
    """A WebSocket session in one of the protocols, which lasts until ``serve`` returns."""

    protocols: Sequence[str]
    serve: Callable[[web.WebSocketResponse], Awaitable[None]]
    # The same for older clients, which upgrade to SPDY, with the protocols on top of it.
    serve_spdy: Callable[[ByteStream], Awaitable[None]]
    spdy_protocols: Sequence[str]


ApiResponse = BufferedResponse | StreamedResponse | UpgradeResponse
VerbHandler = Callable[[ServedResource, ApiRequest], ApiResponse]
