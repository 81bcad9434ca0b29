"""Commands in containers by the protocols of kubectl and of Python clients, byte by byte."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import attrs

from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@attrs.define
class ExecStream:
    """The complete output of a command, by channel."""

    socket: aiohttp.ClientWebSocketResponse
    output: dict[int, bytes] = attrs.field(factory=dict)

    async def end(self) -> dict[str, Any]:
        """Return the Status that the server closes with."""
        async with asyncio.timeout(15):
            async for message in self.socket:
                self._keep(message.data)
        return dict(json.loads(self.output[3]))

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(15):
            while text not in self.output.get(1, b""):
                self._keep(await self.socket.receive_bytes())

    def _keep(self, data: bytes) -> None:
        self.output[data[0]] = self.output.get(data[0], b"") + data[1:]

    @property
    def out(self) -> str:
        return self.output.get(1, b"").decode()


@asynccontextmanager
async def session(harness: NodeHarness) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {harness.cluster.server.token}"}
    authority = (harness.cluster.server.ca_pem or b"").decode()
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority))
    async with aiohttp.ClientSession(
        harness.cluster.server.url, headers=headers, connector=connector
    ) as opened:
        yield opened


def path(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}/exec"


@asynccontextmanager
async def open_exec(
    harness: NodeHarness, name: str, *command: str, protocol: str = V5, **params: str
) -> AsyncIterator[ExecStream]:
    asked = [("command", word) for word in command]
    wanted = {"stdout": "true", "stderr": "true"} | params
    async with (
        session(harness) as client,
        client.ws_connect(
            path(name), params=[*asked, *wanted.items()], protocols=[protocol]
        ) as socket,
    ):
        assert socket.protocol == protocol
        yield ExecStream(socket)


async def refusal(harness: NodeHarness, name: str, **params: str) -> tuple[int, str]:
    async with session(harness) as client, client.get(path(name), params=params) as response:
        return response.status, (await response.json())["message"]


async def run(
    harness: NodeHarness, name: str, *command: str, **params: str
) -> tuple[dict[str, Any], ExecStream]:
    async with open_exec(harness, name, *command, **params) as said:
        return await said.end(), said


async def start(harness: NodeHarness, name: str, **fields: Any) -> None:
    forever = make_container(command=["sh", "-c", "echo up; exec sleep 1000"], **fields)
    await harness.start(name, containers=[forever], terminationGracePeriodSeconds=5)
    await harness.until(name, lambda status: status["phase"] == "Running")
