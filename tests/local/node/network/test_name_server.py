"""Queries of pods for names outside of the cluster."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dlctl.local.node.network.name_server import (
    NameServer,
    answer_queries,
    is_cluster_name,
    name_servers,
)

HEADER = b"\x12\x34\x01\x00\0\1\0\0\0\0\0\0"


def query(name: str) -> bytes:
    labels = [bytes([len(label)]) + label.encode() for label in name.split(".")]
    return HEADER + b"".join(labels) + b"\0\0\1\0\1"


def response_code(response: bytes) -> int:
    return response[3] & 15


def udp_socket() -> socket.socket:
    opened = socket.socket(type=socket.SOCK_DGRAM)
    opened.bind(("127.0.0.1", 0))
    opened.setblocking(False)
    return opened


@asynccontextmanager
async def asked(*servers: NameServer) -> AsyncIterator[socket.socket]:
    """Yield a socket that is connected to a name server which asks these."""
    with udp_socket() as server, udp_socket() as client:
        client.connect(server.getsockname())
        answering = asyncio.ensure_future(answer_queries(server, lambda: servers))
        yield client
        answering.cancel()
        await asyncio.wait([answering])


async def response_to(client: socket.socket, name: str) -> bytes:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, query(name))
    async with asyncio.timeout(5):
        return await loop.sock_recv(client, 512)


async def test_query_for_an_outside_name_gets_the_answer_of_the_machines_name_server() -> None:
    loop = asyncio.get_running_loop()
    with udp_socket() as upstream:
        async with asked((socket.AF_INET, upstream.getsockname())) as client:
            response = asyncio.ensure_future(response_to(client, "example.com"))
            got, sender = await loop.sock_recvfrom(upstream, 512)
            assert got == query("example.com")
            await loop.sock_sendto(upstream, got[:2] + b"the answer", sender)
            assert await response == got[:2] + b"the answer"


async def test_second_name_server_answers_if_the_first_is_unreachable() -> None:
    loop = asyncio.get_running_loop()
    with udp_socket() as closed:
        nobody = closed.getsockname()
    with udp_socket() as upstream:
        servers: list[NameServer] = [
            (socket.AF_INET, nobody),
            (socket.AF_INET, upstream.getsockname()),
        ]
        async with asked(*servers) as client:
            response = asyncio.ensure_future(response_to(client, "example.com"))
            got, sender = await loop.sock_recvfrom(upstream, 512)
            await loop.sock_sendto(upstream, got, sender)
            assert await response == got


async def test_unreachable_name_servers_are_a_failure_at_once() -> None:
    with udp_socket() as closed:
        nobody = closed.getsockname()
    async with asked((socket.AF_INET, nobody)) as client:
        assert response_code(await response_to(client, "example.com")) == 2


@pytest.mark.parametrize("name", ["job-master-0", "svc.default", "svc.other.svc", "Svc.A.SVC"])
async def test_unknown_name_of_the_cluster_does_not_leave_it(name: str) -> None:
    with udp_socket() as upstream:
        async with asked((socket.AF_INET, upstream.getsockname())) as client:
            response = await response_to(client, name)
        assert (response_code(response), response[12:]) == (3, query(name)[12:])
        with pytest.raises(BlockingIOError):
            upstream.recv(512)


async def test_malformed_query_is_dropped() -> None:
    async with asked() as client:
        client.send(b"not a query")
        client.send(HEADER + b"\xff" * 9)
        assert response_code(await response_to(client, "example.com")) == 2


def test_name_servers_are_those_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(
        "search corp\nnameserver 127.0.0.53\nnameserver ::1\nnameserver\n# nameserver\n"
    )
    assert name_servers(path) == [
        (socket.AF_INET, ("127.0.0.53", 53)),
        (socket.AF_INET6, ("::1", 53, 0, 0)),
    ]


def test_machine_without_configuration_is_its_own_name_server(tmp_path: Path) -> None:
    assert name_servers(tmp_path / "missing") == [(socket.AF_INET, ("127.0.0.1", 53))]


@pytest.mark.parametrize(
    "name", ["example.com", "svc.example.com", "huggingface.co", "default.com"]
)
def test_outside_names_are_no_cluster_names(name: str) -> None:
    assert not is_cluster_name(name)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"nameserver a..b\n"], ids=["no text", "no name"])
def test_malformed_list_of_name_servers_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "resolv.conf"
    path.write_bytes(content)
    assert name_servers(path) == [(socket.AF_INET, ("127.0.0.1", 53))]
