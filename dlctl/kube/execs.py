"""A command in a container: how it is asked for, and the talk in which it runs.

The channel protocols v4 and v5 of Kubernetes over a WebSocket: the first byte of each message
names its stream. Nothing here opens a connection.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import aiohttp
import attrs
import msgspec

from dlctl.kube.errors import DisconnectedError, error_from
from dlctl.tasks import unwrapped

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
LIMIT_BYTES: Final = 1 << 20
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_CHUNK_BYTES: Final = 1 << 15


@attrs.frozen
class Completed:
    """How a command has ended, and the beginning of what it said."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    # Whether it said more than was to be kept.
    truncated: bool = False


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    status: str
    reason: str = ""
    details: _Details | None = None


def params(container: str, command: Sequence[str], *, stdin: bool) -> list[tuple[str, str]]:
    """Return what a request for the command says in its query."""
    streams = ["stdout", "stderr", *(["stdin"] if stdin else [])]
    return [
        ("container", container),
        *((name, "true") for name in streams),
        *(("command", word) for word in command),
    ]


async def talk(
    socket: aiohttp.ClientWebSocketResponse, *, stdin: bytes, limit_bytes: int
) -> Completed:
    """Give the command its input, and return how it ended.

    In v4 an input has no end: the command has to know by itself when it has read all.
    :raises ApiError: if it could not be started.
    :raises DisconnectedError: if the connection ended before the command, as far as is known.
    """
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            giving = group.create_task(_give(socket, stdin), name="input of a command")
            completed = await _listen(socket, limit_bytes)
            giving.cancel()
    return completed


async def _give(socket: aiohttp.ClientWebSocketResponse, stdin: bytes) -> None:
    # Whoever listens learns that the connection is gone, and more about it.
    with suppress(ConnectionError):
        for start in range(0, len(stdin), _CHUNK_BYTES):
            await socket.send_bytes(bytes([_STDIN]) + stdin[start : start + _CHUNK_BYTES])
        if stdin and socket.protocol == PROTOCOLS[0]:
            await socket.send_bytes(bytes([_CLOSE, _STDIN]))


async def _listen(socket: aiohttp.ClientWebSocketResponse, limit_bytes: int) -> Completed:
    """Return at the Status, the last that is sent; the close after it need never come."""
    heard = {_STDOUT: bytearray(), _STDERR: bytearray(), _ERROR: bytearray()}
    truncated = False
    async for message in socket:
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            break
        data = message.data.encode() if isinstance(message.data, str) else message.data
        kept = heard.get(data[0]) if data else None
        if kept is None:
            continue
        said = data[1:]
        truncated |= len(kept) + len(said) > limit_bytes
        kept += said[: limit_bytes - len(kept)]
        if data[0] == _ERROR and (exit_code := _exit_code(bytes(kept))) is not None:
            return Completed(exit_code, bytes(heard[_STDOUT]), bytes(heard[_STDERR]), truncated)
    raise DisconnectedError("the connection ended without a word on how the command did")


def _exit_code(body: bytes) -> int | None:
    """Return the exit code in a Status, or None while that is not complete.

    :raises ApiError: if it tells of no command that has ended.
    """
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return None
    if status.status == "Success":
        return 0
    for cause in status.details.causes if status.details else []:
        if cause.reason == "ExitCode" and cause.message.isdecimal():
            return int(cause.message)
    raise error_from(0, {}, body)
