"""Sessions that open WebSockets, for clients whose writes may be fenced.

Opening a WebSocket counts as a write; its messages are not known here.
"""

import asyncio
import socket
from asyncio.trsock import TransportSocket
from contextlib import suppress
from typing import Any, Final

import aiohttp

from dlctl.kube import write_fence
from dlctl.kube.connections import CONNECT_TIMEOUT_S, socket_factory
from dlctl.kube.errors import UnexpectedResponseError, error_from

_CLOSE_TIMEOUT_S: Final = 0.5


def session(user_agent: str, may_write: write_fence.MayWrite | None) -> aiohttp.ClientSession:
    """Return a session that raises our own errors if the WebSocket upgrade is rejected."""
    return aiohttp.ClientSession(
        connector=_connector(may_write),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": user_agent},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        middlewares=(_raise_for_status,),
    )


async def close(websocket: aiohttp.ClientWebSocketResponse) -> None:
    """Close a WebSocket, even if the peer no longer reads."""
    wire: TransportSocket | None = websocket.get_extra_info("socket")
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await websocket.close()
    # Otherwise unread data would keep the connection open.
    _shut_down(wire)


def abort(websocket: aiohttp.ClientWebSocketResponse) -> None:
    """Shut down the connection of a WebSocket at once; it still needs to be closed."""
    _shut_down(websocket.get_extra_info("socket"))


def _shut_down(wire: TransportSocket | None) -> None:
    if wire is not None:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)


async def _raise_for_status(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raise on redirects, which aiohttp would follow with the token, and on error responses.

    aiohttp's own error would also repeat the query, which contains the command.
    """
    response = await handler(request)
    if response.status == 101:
        return response
    async with response:
        if response.status < 300:
            raise UnexpectedResponseError(
                f"GET {request.url.path}: the server does not support WebSockets"
            )
        raise error_from(response.status, response.headers, await response.read())


def _connector(may_write: write_fence.MayWrite | None) -> aiohttp.TCPConnector:
    if may_write is None:
        return aiohttp.TCPConnector(socket_factory=socket_factory(None), limit=0, force_close=True)
    return _FencedConnector(may_write)


class _FencedConnector(aiohttp.TCPConnector):
    """Opens connections only while this process may write: a WebSocket has no body to fence."""

    def __init__(self, may_write: write_fence.MayWrite) -> None:
        super().__init__(socket_factory=socket_factory(may_write), limit=0, force_close=True)
        self._may_write = may_write

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's parameter
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        try:
            write_fence.check(self._may_write)
        except BaseException:
            connection.close()
            raise
        return connection
