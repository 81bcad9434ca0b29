"""Sockets that the agent opens in the networks of pods."""

import asyncio
import socket

import pytest

from dlctl.local.node.agent.sandboxes import AgentLostError, StartError
from dlctl.local.node.protocol import AgentResponse, OpenSocket
from tests.local.node.agent.fake_agent import Agent, sandboxes_and_agent


async def opened(agent: Agent) -> int:
    """Take the request for a socket, and return its ID."""
    request = await agent.request()
    assert isinstance(request, OpenSocket)
    return request.id


async def test_socket_of_a_cancelled_request_is_skipped() -> None:
    async with sandboxes_and_agent("isolated") as (sandboxes, agent):
        opening = asyncio.create_task(sandboxes.open_socket("pod"))
        request_id = await opened(agent)
        with socket.socket() as former, socket.socket() as wanted:
            wanted.bind(("127.0.0.1", 0))
            socket.send_fds(agent.descriptors, [b"%d" % (request_id - 1)], [former.fileno()])
            # Its descriptor was lost on the way.
            agent.descriptors.send(b"%d" % (request_id - 1))
            socket.send_fds(agent.descriptors, [b"%d" % request_id], [wanted.fileno()])
            agent.respond(AgentResponse(request_id))
            with await opening as found:
                assert found.getsockname() == wanted.getsockname()
                assert not found.get_inheritable()


async def test_message_without_its_descriptor_is_a_start_error() -> None:
    async with sandboxes_and_agent("isolated") as (sandboxes, agent):
        opening = asyncio.create_task(sandboxes.open_socket("pod"))
        request_id = await opened(agent)
        agent.descriptors.send(b"%d" % request_id)
        agent.respond(AgentResponse(request_id))
        with pytest.raises(StartError, match="no socket came with the response"):
            await opening


async def test_end_of_the_agent_while_a_socket_is_opened_is_noticed() -> None:
    async with sandboxes_and_agent("isolated") as (sandboxes, agent):
        opening = asyncio.create_task(sandboxes.open_socket("pod"))
        request_id = await opened(agent)
        agent.descriptors.close()
        agent.respond(AgentResponse(request_id))
        with pytest.raises(AgentLostError):
            await opening
