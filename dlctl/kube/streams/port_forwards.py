"""One connection to a port of a pod, over the channels of a WebSocket.

The first byte of each message names its stream: 0 for data, 1 for an error. The first message of
each stream is the port. A stream has no half-closed state. Nothing here opens a connection.
"""

import asyncio
from contextlib import suppress
from typing import Final

import aiohttp

from dlctl.kube.errors import DisconnectedError
from dlctl.tasks import unwrap_exception_groups

PROTOCOLS: Final = ("v4.channel.k8s.io",)
_DATA, _ERROR = 0, 1
_PORT_BYTES: Final = 2
_CHUNK_BYTES: Final = 1 << 15
# How long the pod may still send data after our side has sent all of its own.
_LINGER_S: Final = 5.0


async def run(
    socket: aiohttp.ClientWebSocketResponse,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Copy both ways until the pod closes its side, or ours is closed and the pod is silent.

    :raises DisconnectedError: if nothing in the pod accepts the connection.
    """
    with unwrap_exception_groups():
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(socket, reader), name="to a port")
            receiving = group.create_task(_receive(socket, writer), name="from a port")
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((receiving,), timeout=_LINGER_S)
            receiving.cancel()
            sending.cancel()


async def _send(socket: aiohttp.ClientWebSocketResponse, reader: asyncio.StreamReader) -> None:
    # The receiver notices a broken connection too, and reports it better.
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK_BYTES):
            await socket.send_bytes(bytes([_DATA]) + data)


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    opened: set[int] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            break
        channel, data = message.data[0], message.data[1:]
        if channel not in opened:
            opened.add(channel)
            data = data[_PORT_BYTES:]
        if channel == _ERROR and data:
            raise DisconnectedError(data.decode(errors="replace").strip())
        if channel == _DATA and data:
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()
