"""Upgrades of HTTP requests to WebSockets or SPDY, and the byte streams inside them."""

import asyncio
from typing import Final

import aiohttp
from aiohttp import web

from dlctl.local.apiserver import status
from dlctl.local.apiserver.requests import UpgradeResponse

_CHUNK_BYTES: Final = 1 << 16
# As on the real server: Python clients send all that they write to stdin in one message.
_MAX_MESSAGE_BYTES: Final = 32 << 20
_SPDY: Final = "SPDY/3.1"
_VERSION_HEADER: Final = "X-Stream-Protocol-Version"


async def upgrade(request: web.BaseRequest, reply: UpgradeResponse) -> web.StreamResponse:
    """Serve a session in the protocol that the client requests; return when it has ended."""
    if "upgrade" not in request.headers.get("Connection", "").lower():
        raise status.bad_request("Upgrade request required")
    wanted = request.headers.get("Upgrade", "").lower()
    if wanted == _SPDY.lower():
        return await _upgrade_to_spdy(request, reply)
    if wanted != "websocket":
        raise status.bad_request(f"unable to upgrade: served are WebSockets and {_SPDY}")
    response = web.WebSocketResponse(
        protocols=reply.protocols, compress=False, max_msg_size=_MAX_MESSAGE_BYTES
    )
    if not response.can_prepare(request).protocol:
        raise status.bad_request(f"unable to upgrade: served are {', '.join(reply.protocols)}")
    await response.prepare(request)
    await reply.serve(response)
    await response.close()
    return response


class WebSocketTunnel:
    """A byte stream in the binary messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return b""
            if message.data:
                return bytes(message.data)

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class _Connection:
    """A byte stream that is the connection itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK_BYTES)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class _Taken(asyncio.StreamReaderProtocol):
    """Receives what the HTTP protocol of a connection would, except for the end of it."""

    def __init__(self, reader: asyncio.StreamReader, http: asyncio.BaseProtocol) -> None:
        super().__init__(reader)
        self._http = http

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._http.connection_lost(exc)


async def _upgrade_to_spdy(request: web.BaseRequest, reply: UpgradeResponse) -> web.StreamResponse:
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client has disconnected")
    named = ",".join(request.headers.getall(_VERSION_HEADER, ()))
    versions = [each.strip() for each in named.split(",")]
    known = [version for version in versions if version in reply.spdy_protocols]
    if not known:
        served = ", ".join(reply.spdy_protocols)
        raise status.bad_request(f"unable to upgrade: served are {served}")
    headers = {"Connection": "Upgrade", "Upgrade": _SPDY, _VERSION_HEADER: known[0]}
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    http, reader = transport.get_protocol(), asyncio.StreamReader()
    taken = _Taken(reader, http)
    # Before the response: the next bytes of the client are not HTTP.
    transport.set_protocol(taken)
    taken.connection_made(transport)
    writer = asyncio.StreamWriter(transport, taken, reader, asyncio.get_running_loop())
    try:
        await response.prepare(request)
        await reply.serve_spdy(_Connection(reader, writer))
    finally:
        transport.set_protocol(http)
        writer.close()
    return response
