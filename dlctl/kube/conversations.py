"""Sessions in which WebSockets are opened, by clients that may have to hold their writes.

What is said over a WebSocket is not known here; that anything is, counts as a write.
"""

import asyncio
import socket
from asyncio.trsock import TransportSocket
from contextlib import suppress
from typing import Any, Final

import aiohttp

from dlctl.kube import gate
from dlctl.kube.connections import CONNECT_S, sockets
from dlctl.kube.errors import UnexpectedAnswerError, error_from

_FAREWELL_S: Final = 0.5


def session(user_agent: str, may_write: gate.MayWrite | None) -> aiohttp.ClientSession:
    """Return a session that raises our own errors where a WebSocket is refused."""
    return aiohttp.ClientSession(
        connector=_connector(may_write),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": user_agent},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        middlewares=(_refusals_raised,),
    )


async def hang_up(opened: aiohttp.ClientWebSocketResponse) -> None:
    """Close a WebSocket, whether or not the other side takes anything any more."""
    wire: TransportSocket | None = opened.get_extra_info("socket")
    with suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL_S):
            await opened.close()
    # Else what nobody reads would keep the connection until it is read.
    _shut(wire)


def cut(opened: aiohttp.ClientWebSocketResponse) -> None:
    """End the connection of a WebSocket at once; it is still to be closed."""
    _shut(opened.get_extra_info("socket"))


def _shut(wire: TransportSocket | None) -> None:
    if wire is not None:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)


async def _refusals_raised(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raise what aiohttp would follow, with the token, or tell without the server's words.

    Its own error would also repeat the query, in which there is what is said to the server.
    """
    response = await handler(request)
    if response.status == 101:
        return response
    async with response:
        if response.status < 300:
            raise UnexpectedAnswerError(f"GET {request.url.path}: the server speaks no WebSocket")
        raise error_from(response.status, response.headers, await response.read())


def _connector(may_write: gate.MayWrite | None) -> aiohttp.TCPConnector:
    if may_write is None:
        return aiohttp.TCPConnector(socket_factory=sockets(None), limit=0, force_close=True)
    return _GatedConnector(may_write)


class _GatedConnector(aiohttp.TCPConnector):
    """Gives connections only while this process may write: there is no body that could be held."""

    def __init__(self, may_write: gate.MayWrite) -> None:
        super().__init__(socket_factory=sockets(may_write), limit=0, force_close=True)
        self._may_write = may_write

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's name
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        try:
            gate.check(self._may_write)
        except BaseException:
            connection.close()
            raise
        return connection
