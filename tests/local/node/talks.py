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
from tests.local.node.lab import Lab

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@attrs.define
class Talk:
    """What a command has said, by channel, up to its end."""

    socket: aiohttp.ClientWebSocketResponse
    heard: dict[int, bytes] = attrs.field(factory=dict)

    async def end(self) -> dict[str, Any]:
        """Return the Status that the server closes with."""
        async with asyncio.timeout(15):
            async for message in self.socket:
                self._keep(message.data)
        return dict(json.loads(self.heard[3]))

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(15):
            while text not in self.heard.get(1, b""):
                self._keep(await self.socket.receive_bytes())

    def _keep(self, data: bytes) -> None:
        self.heard[data[0]] = self.heard.get(data[0], b"") + data[1:]

    @property
    def out(self) -> str:
        return self.heard.get(1, b"").decode()


@asynccontextmanager
async def session(lab: Lab) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {lab.cluster.server.token}"}
    authority = (lab.cluster.server.ca_pem or b"").decode()
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority))
    async with aiohttp.ClientSession(
        lab.cluster.server.url, headers=headers, connector=connector
    ) as opened:
        yield opened


def path(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}/exec"


@asynccontextmanager
async def talk(
    lab: Lab, name: str, *command: str, protocol: str = V5, **params: str
) -> AsyncIterator[Talk]:
    asked = [("command", word) for word in command]
    wanted = {"stdout": "true", "stderr": "true"} | params
    async with (
        session(lab) as client,
        client.ws_connect(
            path(name), params=[*asked, *wanted.items()], protocols=[protocol]
        ) as socket,
    ):
        assert socket.protocol == protocol
        yield Talk(socket)


async def refusal(lab: Lab, name: str, **params: str) -> tuple[int, str]:
    async with session(lab) as client, client.get(path(name), params=params) as response:
        return response.status, (await response.json())["message"]


async def run(lab: Lab, name: str, *command: str, **params: str) -> tuple[dict[str, Any], Talk]:
    async with talk(lab, name, *command, **params) as said:
        return await said.end(), said


async def start(lab: Lab, name: str, **fields: Any) -> None:
    forever = make_container(command=["sh", "-c", "echo up; exec sleep 1000"], **fields)
    await lab.start(name, containers=[forever], terminationGracePeriodSeconds=5)
    await lab.until(name, lambda status: status["phase"] == "Running")
