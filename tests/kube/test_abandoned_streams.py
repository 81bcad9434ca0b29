"""Streams that are not read to their end, over TLS."""

import asyncio
from urllib.parse import urlsplit

import attrs

from dlctl.api.meta import PODS
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import serve


@attrs.define
class Relay:
    """Passes bytes on to a server; once it is quiet, none from the client."""

    address: str
    is_quiet: bool = False
    has_ended: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, until the client ends it."""
        target = urlsplit(self.address)
        upstream, server = await asyncio.open_connection(target.hostname, target.port)
        async with asyncio.TaskGroup() as group:
            responses = group.create_task(self._pass_on(upstream, writer))
            while data := await _read(reader):
                if not self.is_quiet:
                    server.write(data)
            self.has_ended.set()
            responses.cancel()
        for each in (server, writer):
            each.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65536)
    except ConnectionResetError:
        return b""


async def test_connection_ends_at_once_though_the_server_does_not_end_tls() -> None:
    async with serve() as server:
        config = server.config()
        relay = Relay(config.server)
        listener = await asyncio.start_server(relay.handle, "127.0.0.1")
        port = listener.sockets[0].getsockname()[1]
        async with (
            listener,
            Client(
                attrs.evolve(config, server=f"https://127.0.0.1:{port}"), user_agent="dlctl/test"
            ) as client,
        ):
            async with client.watch(PODS, resource_version="0"):
                relay.is_quiet = True
            # A closing handshake of TLS would wait for 30 s.
            async with asyncio.timeout(10):
                await relay.has_ended.wait()
