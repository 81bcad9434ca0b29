"""Commands in containers, as ``kubectl exec`` requests them.

The node runs the command; nothing here knows it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Annotated, Any, Final, Protocol

import attrs
import msgspec

from dlctl.local.apiserver import status
from dlctl.local.apiserver.request_options import boolean
from dlctl.local.apiserver.requests import ApiRequest, UpgradeResponse
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.upgrades.channels import (
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Channels,
    Message,
    channel_response,
)

_CHUNK_BYTES: Final = 1 << 15
# Processes that a command leaves behind may hold its output open indefinitely.
_LINGER_S: Final = 0.5


class ExecStreams(Protocol):
    """The streams of a command, possibly those of a terminal."""

    @property
    def stdin(self) -> asyncio.StreamWriter | None: ...

    @property
    def stdout(self) -> asyncio.StreamReader: ...

    @property
    def stderr(self) -> asyncio.StreamReader: ...

    @property
    def resize(self) -> Callable[[int, int], None]: ...


class ExecSession(Protocol):
    """A running command: its streams and its exit code."""

    @property
    def streams(self) -> ExecStreams: ...

    @property
    def exit_code(self) -> "asyncio.Future[int]": ...

    def kill(self) -> None: ...


@attrs.frozen
class PodExecOptions:
    """The command, its container, and the streams requested."""

    namespace: str
    pod: str
    container: str
    command: Sequence[str]
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


# As many columns or rows as Linux can set.
_Extent = Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]


class _Size(msgspec.Struct, rename="pascal"):
    width: _Extent
    height: _Extent


# Leaving the block kills the command; a StatusError says why it cannot run.
ExecSource = Callable[[PodExecOptions], AbstractAsyncContextManager[ExecSession]]


def parse_request(api_request: ApiRequest, container: str) -> PodExecOptions:
    """Return the request for a command; raise StatusError if it is incomplete."""
    streams = requested_streams(api_request)
    if not api_request.command:
        raise status.bad_request("you must specify a command")
    return PodExecOptions(
        api_request.info.namespace,
        api_request.info.name,
        container,
        tuple(api_request.command),
        **streams,
    )


def requested_streams(request: ApiRequest) -> dict[str, bool]:
    """Return which streams a request names, and whether they belong to a terminal."""
    names = ("stdin", "stdout", "stderr")
    streams = {name: bool(boolean(request.query, name)) for name in (*names, "tty")}
    if not any(streams[name] for name in names):
        raise status.bad_request("you must specify at least 1 of stdin, stdout, stderr")
    return streams


def exec_response(request: PodExecOptions, source: ExecSource) -> UpgradeResponse:
    """Return the session in which the command runs."""

    async def hold(channels: Channels) -> None:
        try:
            async with source(request) as session:
                end = _exit_status(await _serve(channels, session, request))
        except StatusError as error:
            end = error.body()
        with suppress(ConnectionError):
            await channels.send(ERROR, msgspec.json.encode(end))

    return channel_response(hold, stream_names(attrs.asdict(request)))


def stream_names(streams: Mapping[str, Any]) -> list[str]:
    """Return the streams of a session, by whether they are requested."""
    wanted = {**streams, "error": True, "resize": streams["tty"]}
    return [name for name in ("stdin", "stdout", "stderr", "error", "resize") if wanted[name]]


async def _serve(channels: Channels, session: ExecSession, request: PodExecOptions) -> int:
    """Forward messages until the command ends; if the client disconnects, kill it."""
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(_receive(channels, session))
        sending = [
            group.create_task(_send_output(channels, channel, stream, wanted=wanted))
            for channel, stream, wanted in (
                (STDOUT, session.streams.stdout, request.stdout),
                (STDERR, session.streams.stderr, request.stderr),
            )
        ]
        # A client that disconnects cancels this task, and must not cancel the shared exit code.
        exit_code = await asyncio.shield(session.exit_code)
        await asyncio.wait(sending, timeout=_LINGER_S)
        for task in (listening, *sending):
            task.cancel()
    return exit_code


async def _receive(channels: Channels, session: ExecSession) -> None:
    stdin = session.streams.stdin
    async for message in channels.messages():
        if message.channel == RESIZE:
            _resize(session.streams, message.data)
        elif stdin is not None and message.channel == STDIN:
            # A command that stops reading is not an error; its exit code shows the outcome.
            with suppress(ConnectionError):
                await _write_stdin(stdin, message)
    session.kill()


async def _write_stdin(stdin: asyncio.StreamWriter, message: Message) -> None:
    if stdin.is_closing():
        # Each further write would be logged.
        return
    if message.data:
        stdin.write(message.data)
        await stdin.drain()
    if message.last:
        stdin.close()


def _resize(streams: ExecStreams, data: bytes) -> None:
    # Invalid sizes are ignored.
    with suppress(msgspec.DecodeError):
        size = msgspec.json.decode(data, type=_Size)
        streams.resize(size.width, size.height)


async def _send_output(
    channels: Channels, channel: int, stream: asyncio.StreamReader, *, wanted: bool
) -> None:
    with suppress(ConnectionError):
        while data := await stream.read(_CHUNK_BYTES):
            if wanted:
                await channels.send(channel, data)


def _exit_status(exit_code: int) -> dict[str, Any]:
    """Return the Status from which clients read an exit code."""
    if not exit_code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit code {exit_code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(exit_code)}]},
    }
