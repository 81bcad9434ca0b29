"""Requests and responses, as values between HTTP and the verbs.

Nothing is decided here; a :class:`RequestInfo` says what a request is about.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

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
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    user: User = ADMIN
    # Set only by a fault: how many revisions old a list may be.
    stale_by: int = 0


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


@attrs.frozen
class UpgradeResponse:
    """A WebSocket session in one of the protocols, which lasts until ``hold`` returns."""

    protocols: Sequence[str]
    serve: Callable[[web.WebSocketResponse], Awaitable[None]]


ApiResponse = BufferedResponse | StreamedResponse | UpgradeResponse
VerbHandler = Callable[[ServedResource, ApiRequest], ApiResponse]
