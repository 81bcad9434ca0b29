"""The streams of a command or container, as channels of a WebSocket or streams of SPDY.

In a WebSocket, the first byte of every message names its channel, by the protocols v4 and v5 of
Kubernetes. In SPDY, which older kubectls and Go programs use, the client opens a stream for each.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final, Protocol

import aiohttp
import attrs
from aiohttp import web

from dlctl.local.apiserver.requests import ByteStream, UpgradeResponse
from dlctl.local.apiserver.upgrades.spdy_frames import (
    Ping,
    SpdyDecoder,
    SpdyEncoder,
    SpdyError,
    SpdyEvent,
    StreamData,
    StreamOpened,
    data_frame,
)

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_NAMES: Final = ("stdin", "stdout", "stderr", "error", "resize")
_CLOSE: Final = 255
_V4: Final = "v4.channel.k8s.io"
_PROTOCOLS: Final = ("v5.channel.k8s.io", _V4)


@attrs.frozen
class Message:
    """Bytes that the client sends on a channel; ``last`` closes it."""

    channel: int
    data: bytes
    last: bool = False


class Channels(Protocol):
    """Both directions of a session."""

    def messages(self) -> AsyncIterator[Message]:
        """Yield what the client sends, until it disconnects."""
        ...

    async def send(self, channel: int, data: bytes) -> None: ...


Hold = Callable[[Channels], Awaitable[None]]


def channel_response(hold: Hold, streams: Collection[str]) -> UpgradeResponse:
    """Return a session with these streams, of which that of errors is one."""

    async def serve(socket: web.WebSocketResponse) -> None:
        await hold(_WebSocketChannels(socket))

    async def serve_spdy(stream: ByteStream) -> None:
        channels = _SpdyChannels(stream)
        with suppress(SpdyError, ConnectionError):
            await channels.open(streams)
            await hold(channels)
            await channels.close()

    return UpgradeResponse(_PROTOCOLS, serve, serve_spdy, (_V4,))


@attrs.frozen
class _WebSocketChannels:
    socket: web.WebSocketResponse

    async def messages(self) -> AsyncIterator[Message]:
        async for message in self.socket:
            data = message.data
            if message.type is aiohttp.WSMsgType.TEXT:
                data = data.encode()
            elif message.type is not aiohttp.WSMsgType.BINARY:
                return
            if len(data) == 2 and data[0] == _CLOSE:
                yield Message(data[1], b"", last=True)
            elif data:
                yield Message(data[0], data[1:])

    async def send(self, channel: int, data: bytes) -> None:
        await self.socket.send_bytes(bytes([channel]) + data)


class _SpdyChannels:
    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._encoder = SpdyEncoder()
        self._events = self._read()
        self._streams: dict[int, int] = {}

    async def open(self, names: Collection[str]) -> None:
        """Accept streams until all of them are open."""
        wanted = {_NAMES.index(name) for name in names}
        while not wanted <= self._streams.keys():
            event = await anext(self._events, None)
            if event is None:
                raise ConnectionResetError("the client has disconnected")
            if isinstance(event, StreamOpened):
                name = event.headers.get("streamtype", "")
                if name not in _NAMES:
                    raise SpdyError(f"unknown stream {name}")
                self._streams[_NAMES.index(name)] = event.stream
                await self._stream.write(self._encoder.accept(event.stream))

    async def messages(self) -> AsyncIterator[Message]:
        channels = {stream: channel for channel, stream in self._streams.items()}
        async for event in self._events:
            if isinstance(event, StreamData) and event.stream in channels:
                yield Message(channels[event.stream], event.data, event.last)

    async def send(self, channel: int, data: bytes) -> None:
        if (stream := self._streams.get(channel)) is not None:
            await self._stream.write(data_frame(stream, data))

    async def close(self) -> None:
        for stream in self._streams.values():
            await self._stream.write(data_frame(stream, b"", last=True))

    async def _read(self) -> AsyncIterator[SpdyEvent]:
        decoder = SpdyDecoder()
        while data := await self._stream.read():
            for event in decoder.feed(data):
                if isinstance(event, Ping):
                    await self._stream.write(event.frame)
                else:
                    yield event
