"""An agent of a node whose responses a test writes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import msgspec

from dlctl.local.node.agent.sandboxes import Network, NetworkMode, Sandboxes
from dlctl.local.node.protocol import AgentRequest, AgentResponse, ExecExited

_decode = msgspec.json.Decoder(AgentRequest).decode


@attrs.frozen
class Agent:
    """The other end of a node's sandboxes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    descriptors: socket.socket

    async def request(self) -> AgentRequest:
        async with asyncio.timeout(10):
            request: AgentRequest = _decode(await self.reader.readline())
        return request

    def respond(self, response: AgentResponse | ExecExited) -> None:
        self.writer.write(msgspec.json.encode(response) + b"\n")


@asynccontextmanager
async def sandboxes_and_agent(
    network: NetworkMode = "host",
) -> AsyncIterator[tuple[Sandboxes, Agent]]:
    ours, theirs = socket.socketpair()
    descriptors, other = socket.socketpair(type=socket.SOCK_SEQPACKET)
    reader, writer = await asyncio.open_connection(sock=ours)
    agent = Agent(*await asyncio.open_connection(sock=theirs), other)
    with descriptors, other:
        sandboxes = Sandboxes(Network(network), reader, writer, descriptors)
        receiving = asyncio.create_task(sandboxes.receive())
        yield sandboxes, agent
        receiving.cancel()
    for each in (writer, agent.writer):
        each.close()
