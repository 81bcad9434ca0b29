"""A request and the kinds of responses, as values between HTTP and the verbs.

Nothing is decided here; what a call is about is a :class:`Target`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import attrs
from aiohttp import web

from dlctl.local.apiserver.authentication import ADMIN, User
from dlctl.local.apiserver.request_info import RequestInfo


@attrs.frozen
class ApiRequest:
    """One request, as far as verbs are concerned."""

    verb: str
    info: RequestInfo
    query: Mapping[str, str]
    dry_run: Sequence[str] = ()
    # The words of a command that is to run in a container.
    command: Sequence[str] = ()
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    user: User = ADMIN
    # Only by a fault: how many revisions ago a list that need not be fresh is from.
    stale_by: int = 0


@attrs.frozen
class BufferedResponse:
    """A body that is sent at once."""

    body: bytes
    code: int = 200
    content_type: str = "application/json"


@attrs.frozen
class StreamedResponse:
    """A body that is sent as it comes about."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"


@attrs.frozen
class UpgradeResponse:
    """Messages both ways over a WebSocket, in one of the protocols; ``hold`` ends it."""

    protocols: Sequence[str]
    serve: Callable[[web.WebSocketResponse], Awaitable[None]]


Response = BufferedResponse | StreamedResponse | UpgradeResponse
