"""Writes that must not be sent, or not be delivered later."""

import asyncio
import socket
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import attrs
import pytest

from dlctl.api.meta import PODS, SERVICES, ObjectKey
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.kube.connections import keepalive_socket
from dlctl.kube.errors import WriteFencedError
from dlctl.metrics import Metrics
from tests.kube.scripted_server import Server, fails, replies

KEY = ObjectKey("ns", "a")
POD: dict[str, Any] = {"metadata": {"name": "a"}}


@attrs.define
class MayWriteTimes:
    """Allows a number of writes, then no more."""

    allowed_count: float = float("inf")

    def __call__(self) -> bool:
        self.allowed_count -= 1
        return self.allowed_count >= 0


@pytest.fixture
def may_write() -> MayWriteTimes:
    return MayWriteTimes()


@pytest.fixture
async def client(server: Server, may_write: MayWriteTimes) -> AsyncIterator[Client]:
    server.handlers.append(replies(POD))
    config = ClusterConfig.with_token(server.url, "token")
    async with Client(config, metrics=Metrics(), may_write=may_write) as client:
        yield client


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda c: c.create(PODS, "ns", POD), id="create"),
        pytest.param(lambda c: c.patch(PODS, KEY, {}), id="patch"),
        pytest.param(lambda c: c.replace(PODS, KEY, POD), id="replace"),
        pytest.param(lambda c: c.delete(PODS, KEY), id="delete"),
    ],
)
async def test_write_is_sent_only_while_allowed(
    client: Client, server: Server, may_write: MayWriteTimes, write: Any
) -> None:
    await write(client)
    assert len(server.seen) == 1
    may_write.allowed_count = 0
    with pytest.raises(WriteFencedError):
        await write(client)
    assert len(server.seen) == 1


async def test_reads_are_always_sent(
    client: Client, server: Server, may_write: MayWriteTimes
) -> None:
    may_write.allowed_count = 0
    await client.get(PODS, KEY, dict)
    async with client.watch(SERVICES, namespace="ns") as lines:
        assert [line async for line in lines]
    assert len(server.seen) == 2


async def test_write_is_held_if_the_fence_closes_while_connecting(
    client: Client, server: Server, may_write: MayWriteTimes
) -> None:
    may_write.allowed_count = 1
    limit = client.write_limiter.limit
    with pytest.raises(WriteFencedError):
        await client.create(PODS, "ns", POD)
    # It says nothing about the server.
    assert client.write_limiter.limit == limit
    await client.get(PODS, KEY, dict)
    assert [seen.method for seen in server.seen] == ["GET"]


async def test_fence_is_checked_again_before_a_retry(
    client: Client, server: Server, may_write: MayWriteTimes
) -> None:
    server.handlers.clear()
    server.handlers += [fails(429, "TooManyRequests", Retry_After="0"), replies(POD)]
    may_write.allowed_count = 2
    with pytest.raises(WriteFencedError):
        await client.create(PODS, "ns", POD)
    assert len(server.seen) == 1


@pytest.mark.parametrize("forget", [True, False])
async def test_connection_closed_by_a_fenced_client_delivers_nothing_more(forget: bool) -> None:
    """A peer that reads nothing simulates a broken network."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", listener.getsockname())
        connection = partial(keepalive_socket, forget_unsent=forget)(address)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        connection.connect(listener.getsockname())
        peer, _ = listener.accept()
        with peer:
            connection.setblocking(False)
            sent = connection.send(b"x" * (8 << 20))
            connection.close()
            received = await loop.run_in_executor(None, _received, peer)
    assert (received == sent) is not forget


def _received(peer: socket.socket) -> int:
    """Return the number of bytes received until the connection was closed or reset."""
    total = 0
    try:
        while chunk := peer.recv(1 << 16):
            total += len(chunk)
    except ConnectionResetError:
        pass
    return total
