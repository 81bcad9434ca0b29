"""Connections to ports of pods, as ``kubectl port-forward`` and Python clients make them.

kubectl opens two SPDY streams for each connection, one for data and one for an error, and sends
them through a WebSocket or an upgraded connection. Python clients use WebSocket channels instead.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import aiohttp
import attrs
from aiohttp import web

from dlctl.api.meta import ObjectKey
from dlctl.local.apiserver import status
from dlctl.local.apiserver.requests import ApiRequest, ByteStream, UpgradeResponse
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.upgrades import spdy_frames
from dlctl.local.apiserver.upgrades.spdy_frames import (
    Ping,
    SpdyDecoder,
    SpdyEncoder,
    SpdyError,
    StreamData,
    StreamOpened,
    StreamReset,
)
from dlctl.local.apiserver.upgrades.upgrades import WebSocketTunnel

_TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
_SPDY: Final = "portforward.k8s.io"
_CHANNELS: Final = "v4.channel.k8s.io"
_CHUNK_BYTES: Final = 1 << 15
_CONNECT_TIMEOUT_S: Final = 10.0
# Each has two channels, which are numbered by a byte.
_MAX_PORTS: Final = 128

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# Connects to a port of a pod; a StatusError or OSError says why it cannot.
PortForwardSource = Callable[[ObjectKey, int], Awaitable[Connection]]
_Connect = Callable[[int], Awaitable[Connection]]


def port_forward_response(request: ApiRequest, source: PortForwardSource) -> UpgradeResponse:
    """Return the session in which the client connects to ports of the pod."""
    pod, ports = request.info.key, _ports(request)

    async def connect(port: int) -> Connection:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                return await source(pod, port)
        except TimeoutError:
            raise OSError("no answer") from None

    async def serve(socket: web.WebSocketResponse) -> None:
        if socket.ws_protocol == _TUNNEL:
            await serve_spdy(WebSocketTunnel(socket))
        else:
            await _serve_channels(socket, ports, connect)

    async def serve_spdy(stream: ByteStream) -> None:
        async with asyncio.TaskGroup() as group:
            session = _SpdySession(stream, connect, group)
            try:
                with suppress(SpdyError, ConnectionError):
                    await session.run()
            finally:
                # A client that disconnects cancels this task.
                session.end()

    return UpgradeResponse((_TUNNEL, _CHANNELS), serve, serve_spdy, (_SPDY,))


def _ports(request: ApiRequest) -> list[int]:
    texts = [text for given in request.ports for text in given.split(",")]
    if any(not text.isdecimal() or not 0 < int(text) < 65536 for text in texts):
        raise status.bad_request(f'"ports" must be numbers from 1 to 65535: {", ".join(texts)}')
    if len(texts) > _MAX_PORTS:
        raise status.bad_request(f'"ports" may be {_MAX_PORTS} at most, got {len(texts)}')
    return [int(text) for text in texts]


def _refusal(port: int, error: OSError | StatusError) -> bytes:
    reason = error.strerror if isinstance(error, OSError) else None
    return f"port {port} of the pod: {reason or error}".encode()


@attrs.define(eq=False)
class _Forwarded:
    """One connection of the client: its two streams, and the connection to the pod."""

    streams: dict[str, int] = attrs.field(factory=dict)
    target: asyncio.StreamWriter | None = None
    task: "asyncio.Task[None] | None" = None


@attrs.define(eq=False)
class _SpdySession:
    """All connections of one client, until it disconnects."""

    stream: ByteStream
    connect: _Connect
    group: asyncio.TaskGroup
    _encoder: SpdyEncoder = attrs.field(init=False, factory=SpdyEncoder)
    # By the request ID that both streams name.
    _forwarded: dict[str, _Forwarded] = attrs.field(init=False, factory=dict)
    _by_data_stream: dict[int, _Forwarded] = attrs.field(init=False, factory=dict)

    async def run(self) -> None:
        """Handle the client's frames until it disconnects."""
        decoder = SpdyDecoder()
        while data := await self.stream.read():
            for event in decoder.feed(data):
                match event:
                    case StreamOpened():
                        await self._open(event)
                    case StreamData():
                        await self._forward(event)
                    case StreamReset():
                        self._close(self._by_data_stream.pop(event.stream, None))
                    case Ping():
                        await self.stream.write(event.frame)

    def end(self) -> None:
        for forwarded in self._by_data_stream.values():
            self._close(forwarded)

    async def _open(self, event: StreamOpened) -> None:
        await self.stream.write(self._encoder.accept(event.stream))
        name = event.headers.get("requestid", event.headers.get("port", ""))
        forwarded = self._forwarded.setdefault(name, _Forwarded())
        forwarded.streams[event.headers.get("streamtype", "")] = event.stream
        if {"data", "error"} <= forwarded.streams.keys():
            del self._forwarded[name]
            await self._connect(forwarded, int(event.headers.get("port", 0)))

    async def _connect(self, forwarded: _Forwarded, port: int) -> None:
        data, error = forwarded.streams["data"], forwarded.streams["error"]
        try:
            reader, forwarded.target = await self.connect(port)
        except (OSError, StatusError) as failure:
            text = _refusal(port, failure)
            await self.stream.write(spdy_frames.data_frame(error, text, last=True))
            await self.stream.write(spdy_frames.data_frame(data, b"", last=True))
            return
        self._by_data_stream[data] = forwarded
        forwarded.task = self.group.create_task(self._return(reader, data, error))

    async def _forward(self, event: StreamData) -> None:
        forwarded = self._by_data_stream.get(event.stream)
        if forwarded is None or forwarded.target is None:
            return
        # A program that stops reading ends its own connection only.
        with suppress(OSError):
            if event.data:
                forwarded.target.write(event.data)
                await forwarded.target.drain()
            if event.last:
                forwarded.target.write_eof()

    async def _return(self, reader: asyncio.StreamReader, data: int, error: int) -> None:
        """Send what the program writes, until it closes the connection."""
        with suppress(ConnectionError):
            with suppress(OSError):
                while chunk := await reader.read(_CHUNK_BYTES):
                    await self.stream.write(spdy_frames.data_frame(data, chunk))
            for stream in (data, error):
                await self.stream.write(spdy_frames.data_frame(stream, b"", last=True))
        if (forwarded := self._by_data_stream.pop(data, None)) and forwarded.target:
            forwarded.target.close()

    def _close(self, forwarded: _Forwarded | None) -> None:
        if forwarded and forwarded.target and forwarded.task:
            forwarded.target.close()
            forwarded.task.cancel()


async def _serve_channels(
    socket: web.WebSocketResponse, ports: list[int], connect: _Connect
) -> None:
    """Serve one connection to each port: channels 2i and 2i + 1 are its data and its error."""
    targets: dict[int, asyncio.StreamWriter] = {}
    try:
        await _forward_channels(socket, ports, connect, targets)
    finally:
        # A client that disconnects cancels this task.
        for target in targets.values():
            target.close()


async def _forward_channels(
    socket: web.WebSocketResponse,
    ports: list[int],
    connect: _Connect,
    targets: dict[int, asyncio.StreamWriter],
) -> None:
    """Forward until the client disconnects or all connections, added to ``targets``, have ended."""
    async with asyncio.TaskGroup() as group:
        tasks = []
        for index, port in enumerate(ports):
            channel = 2 * index
            for each in (channel, channel + 1):
                await socket.send_bytes(bytes([each]) + port.to_bytes(2, "little"))
            try:
                reader, targets[channel] = await connect(port)
            except (OSError, StatusError) as failure:
                await socket.send_bytes(bytes([channel + 1]) + _refusal(port, failure))
            else:
                tasks.append(group.create_task(_send_channel(socket, channel, reader)))
        receiving = group.create_task(_receive_channels(socket, targets))
        await asyncio.wait([*tasks, receiving], return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done() and tasks:
            await asyncio.wait(tasks)
        for task in (receiving, *tasks):
            task.cancel()


async def _send_channel(
    socket: web.WebSocketResponse, channel: int, reader: asyncio.StreamReader
) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            await socket.send_bytes(bytes([channel]) + chunk)


async def _receive_channels(
    socket: web.WebSocketResponse, targets: dict[int, asyncio.StreamWriter]
) -> None:
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        target = targets.get(message.data[0])
        if target is not None:
            with suppress(OSError):
                target.write(message.data[1:])
                await target.drain()
