"""Commands in containers: the request, and the exec protocol.

The channel protocols v4 and v5 of Kubernetes over a WebSocket: the first byte of each message names
its stream. Nothing here opens a connection.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import aiohttp
import attrs

from dlctl.kube.errors import DisconnectedError, OutputLimitError, error_from
from dlctl.kube.status import decode_status
from dlctl.tasks import unwrap_exception_groups
from dlctl.token_bucket import TokenBucket

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
LIMIT_BYTES: Final = 1 << 16
# Read rate after an initial burst. Unread output blocks the command itself.
RATE_BYTES_PER_S: Final = 1 << 20
_BURST_BYTES: Final = 1 << 18
# Even a message of a single byte costs work.
_MIN_READ_BYTES: Final = 1 << 12
_PAUSE_S: Final = 0.05
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_CHUNK_BYTES: Final = 1 << 15


@attrs.frozen
class ExecResult:
    """The outcome of a command, and its output: all of it, or the end if ``is_truncated``."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    # True if it wrote more than the limit.
    is_truncated: bool = False


@attrs.frozen
class OutputLimit:
    """How much of each output stream is kept, and how a command that writes more is handled."""

    bytes: int = LIMIT_BYTES
    # Keep the end and let the command go on; otherwise the connection is closed.
    keep_end: bool = False


def query_params(container: str, command: Sequence[str], *, stdin: bool) -> list[tuple[str, str]]:
    """Return the query of an exec request."""
    streams = ["stdout", "stderr", *(["stdin"] if stdin else [])]
    return [
        ("container", container),
        *((name, "true") for name in streams),
        *(("command", word) for word in command),
    ]


async def run(
    socket: aiohttp.ClientWebSocketResponse, *, stdin: bytes, limit: OutputLimit
) -> ExecResult:
    """Send the command its input; return its result.

    In v4 the input has no end: the command must know when it has read everything.
    :raises ApiError: if it could not be started.
    :raises DisconnectedError: if the connection ended before the command did, as far as is known.
    :raises OutputLimitError: if it exceeds the output limit.
    """
    with unwrap_exception_groups():
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send_stdin(socket, stdin), name="input of a command")
            completed = await _receive(socket, limit)
            sending.cancel()
    return completed


async def _send_stdin(socket: aiohttp.ClientWebSocketResponse, stdin: bytes) -> None:
    # The receiver notices a broken connection too, and reports it better.
    with suppress(ConnectionError):
        for start in range(0, len(stdin), _CHUNK_BYTES):
            await socket.send_bytes(bytes([_STDIN]) + stdin[start : start + _CHUNK_BYTES])
        if stdin and socket.protocol == PROTOCOLS[0]:
            await socket.send_bytes(bytes([_CLOSE, _STDIN]))


async def _receive(socket: aiohttp.ClientWebSocketResponse, limit: OutputLimit) -> ExecResult:
    """Return at the Status, which is sent last; the close after it may never come."""
    streams = {_STDOUT: _Output(limit), _STDERR: _Output(limit)}
    try:
        return await _receive_output(socket, streams)
    finally:
        # An error's traceback keeps the buffers in a cycle until an old-generation collection.
        for stream in streams.values():
            stream.clear()


async def _receive_output(
    socket: aiohttp.ClientWebSocketResponse, streams: "Mapping[int, _Output]"
) -> ExecResult:
    error, bucket = bytearray(), TokenBucket(1 / RATE_BYTES_PER_S, _BURST_BYTES)
    async for message in socket:
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            break
        data = message.data.encode() if isinstance(message.data, str) else message.data
        stream = data[0] if data else _CLOSE
        if stream in streams:
            streams[stream].add(data[1:])
        elif stream == _ERROR:
            error += data[1 : 1 + LIMIT_BYTES - len(error)]
            if (exit_code := _exit_code(bytes(error))) is not None:
                out, err = streams[_STDOUT], streams[_STDERR]
                cut = out.is_truncated or err.is_truncated
                return ExecResult(exit_code, out.value(), err.value(), cut)
        await _throttle(bucket, len(data))
    raise DisconnectedError("the connection ended before the command's status arrived")


@attrs.define
class _Output:
    """One output stream, as far as it is kept."""

    limit: OutputLimit
    is_truncated: bool = False
    _buffer: bytearray = attrs.field(factory=bytearray)

    def add(self, written: bytes) -> None:
        self._buffer += written
        if len(self._buffer) <= self.limit.bytes:
            return
        self.is_truncated = True
        if not self.limit.keep_end:
            raise OutputLimitError(f"the command wrote more than {self.limit.bytes} bytes")
        if len(self._buffer) > 2 * self.limit.bytes:
            del self._buffer[: -self.limit.bytes]

    def clear(self) -> None:
        self._buffer.clear()

    def value(self) -> bytes:
        return bytes(self._buffer[-self.limit.bytes :])


async def _throttle(bucket: TokenBucket, read_bytes: int) -> None:
    """Wait, so that endless output costs a bounded share of the event loop."""
    now_s = asyncio.get_running_loop().time()
    wait_s = bucket.reserve(now_s, max(read_bytes, _MIN_READ_BYTES))
    if wait_s >= _PAUSE_S:
        await asyncio.sleep(wait_s)


def _exit_code(body: bytes) -> int | None:
    """Return the exit code in a Status, or None while the Status is incomplete.

    :raises ApiError: if the Status is not about a command that ended.
    """
    status = decode_status(body)
    if status is None or status.status is None:
        return None
    if status.status == "Success":
        return 0
    for cause in status.causes:
        if cause.reason == "ExitCode" and cause.message and cause.message.isdecimal():
            return int(cause.message)
    raise error_from(0, {}, body)
