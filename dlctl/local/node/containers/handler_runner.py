"""Performs the actions of probes and hooks: in a container, or over its pod's network."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.api_types import Container
from dlctl.local.node.containers.exec_sessions import ContainerSession
from dlctl.local.node.handler_types import Handler, HTTPGetAction
from dlctl.local.node.network.connections import Connection, connect

_OUTPUT_BYTES: Final = 10 << 10
# For output that is on its way when the command ends.
_OUTPUT_TIMEOUT_S: Final = 0.1


class HandlerError(DlctlError):
    """The action failed; the message is part of an event."""


@attrs.frozen
class HandlerRunner:
    """Performs the actions for one container."""

    container: Container
    pod_ip: Callable[[], str]
    exec: Callable[[Sequence[str]], AbstractAsyncContextManager[ContainerSession]]
    open_socket: Callable[[], Awaitable[socket.socket]]

    async def perform(self, handler: Handler, timeout_s: float) -> None:
        """Perform the action; raise :class:`HandlerError` unless it succeeds in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._perform(handler)
        except TimeoutError:
            raise HandlerError(f"no result within {timeout_s:g} s") from None
        except OSError as error:
            raise HandlerError(error.strerror or str(error)) from error
        except ValueError as error:
            # A host that cannot be a name, or a line of a response without an end.
            raise HandlerError(str(error)) from error

    async def _perform(self, handler: Handler) -> None:
        if handler.exec is not None:
            await self._run(handler.exec.command or [])
        elif handler.http_get is not None:
            await self._get(handler.http_get)
        elif handler.tcp_socket is not None:
            _, writer = await self._connect(handler.tcp_socket.host, handler.tcp_socket.port)
            writer.close()
        elif handler.sleep is not None:
            await asyncio.sleep(handler.sleep.seconds)

    async def _run(self, command: Sequence[str]) -> None:
        output = bytearray()
        async with self.exec(command) as session, asyncio.TaskGroup() as group:
            streams = (session.streams.stdout, session.streams.stderr)
            reading = [group.create_task(_collect(stream, output)) for stream in streams]
            code = await session.exit_code
            await asyncio.wait(reading, timeout=_OUTPUT_TIMEOUT_S)
            for task in reading:
                # A process that the command left behind may keep the output open.
                task.cancel()
        if code:
            text = output.decode(errors="replace").strip()
            raise HandlerError(text or f"the command exited with code {code}")

    async def _get(self, get: HTTPGetAction) -> None:
        secure = (get.scheme or "HTTP").upper() == "HTTPS"
        reader, writer = await self._connect(get.host, get.port, secure=secure)
        try:
            writer.write(_request(get, self._address(get.host, get.port)))
            words = (await reader.readline()).split()
        finally:
            writer.close()
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            raise HandlerError("the response is not HTTP")
        if not 200 <= int(words[1]) < 400:
            raise HandlerError(f"HTTP probe failed with statuscode: {int(words[1])}")

    async def _connect(
        self, host: str | None, port: int | str, *, secure: bool = False
    ) -> Connection:
        address = self._address(host, port)
        context = None
        if secure:
            context = ssl.create_default_context()
            # As kubelets do: the certificate is not checked.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            return await connect(await self.open_socket(), address, context)
        except OSError as error:
            raise HandlerError(f"connect to {address[0]}:{address[1]}: {error.strerror}") from error

    def _address(self, host: str | None, port: int | str) -> tuple[str, int]:
        named = {each.name: each.container_port for each in self.container.ports or ()}
        number = named.get(port) if isinstance(port, str) else port
        if number is None:
            raise HandlerError(f'the container has no port named "{port}"')
        return host or self.pod_ip(), number


def _request(get: HTTPGetAction, address: tuple[str, int]) -> bytes:
    headers = {
        "Host": f"{address[0]}:{address[1]}",
        "User-Agent": "kube-probe/1.36",
        "Accept": "*/*",
    }
    headers |= {header.name: header.value for header in get.http_headers or ()}
    headers["Connection"] = "close"
    path = get.path or "/"
    lines = [f"GET {path if path.startswith('/') else f'/{path}'} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def _collect(stream: asyncio.StreamReader, output: bytearray) -> None:
    while data := await stream.read(_OUTPUT_BYTES):
        output += data[: _OUTPUT_BYTES - len(output)]
