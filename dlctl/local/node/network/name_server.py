"""Names of the outside for isolated pods: queries go to the name servers of this machine.

dlctl sends them from the machine's own network, where a stub resolver on 127.0.0.53 answers, too.
Names of the cluster are in the pods' hosts files; here they do not exist.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from dlctl.local.node.network.addresses import DNS_PORT

SocketAddress = tuple[str | int, int] | tuple[str, int, int, int] | tuple[int, bytes]
NameServer = tuple[int, SocketAddress]

RESOLV_CONF: Final = Path("/etc/resolv.conf")
_PACKET_BYTES: Final = 1 << 16
# Shorter than the five seconds after which programs ask again.
_TIMEOUT_S: Final = 4.0
_HEADER_BYTES: Final = 12
_SERVER_FAILURE: Final = 2
_NAME_ERROR: Final = 3
# Never sent outside: a name that is not there yet must not be answered by a stranger.
_CLUSTER_SUFFIXES: Final = (".svc", ".cluster.local", ".default")


def name_servers(path: Path = RESOLV_CONF) -> list[NameServer]:
    """Return the address families and addresses of the machine's name servers; never none.

    Read for each query, since laptops change networks.
    """
    # A file that is no text holds none.
    with suppress(OSError, ValueError):
        if found := list(_name_servers(path.read_text(encoding="utf-8"))):
            return found
    return [(socket.AF_INET, ("127.0.0.1", DNS_PORT))]


def _name_servers(text: str) -> Iterator[NameServer]:
    for line in text.splitlines():
        words = line.split()
        if words[:1] != ["nameserver"] or len(words) == 1:
            continue
        with suppress(OSError, ValueError):
            family, *_, address = socket.getaddrinfo(
                words[1], DNS_PORT, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
            )[0]
            yield family, address


async def answer_queries(
    server: socket.socket, list_servers: Callable[[], Sequence[NameServer]] = name_servers
) -> NoReturn:
    """Answer the queries of the pods, until cancelled."""
    loop = asyncio.get_running_loop()
    server.setblocking(False)

    async def answer(query: bytes, sender: SocketAddress) -> None:
        with suppress(OSError):
            await loop.sock_sendto(server, await _answer(query, list_servers), sender)

    async with asyncio.TaskGroup() as group:
        while True:
            with suppress(OSError):
                query, sender = await loop.sock_recvfrom(server, _PACKET_BYTES)
                if _name(query):
                    group.create_task(answer(query, sender), name="DNS query")


async def _answer(query: bytes, list_servers: Callable[[], Sequence[NameServer]]) -> bytes:
    if is_cluster_name(_name(query)):
        return _refusal(query, _NAME_ERROR)
    with suppress(TimeoutError):
        async with asyncio.timeout(_TIMEOUT_S):
            servers = await asyncio.to_thread(list_servers)
            for family, address in servers:
                with suppress(OSError):
                    async with asyncio.timeout(_TIMEOUT_S / len(servers)):
                        return await _ask(query, family, address)
    return _refusal(query, _SERVER_FAILURE)


async def _ask(query: bytes, family: int, address: SocketAddress) -> bytes:
    loop = asyncio.get_running_loop()
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        await loop.sock_connect(asking, address)
        await loop.sock_sendall(asking, query)
        while True:
            response = await loop.sock_recv(asking, _PACKET_BYTES)
            if response[:2] == query[:2]:
                return response


def is_cluster_name(name: str) -> bool:
    """Return whether only the cluster can know the name."""
    return "." not in name or name.endswith(_CLUSTER_SUFFIXES)


def _name(query: bytes) -> str:
    """Return the name that a query asks for; empty if it is malformed."""
    return ".".join(label.decode("ascii", "replace") for label in _labels(query)).lower()


def _labels(query: bytes) -> Iterator[bytes]:
    at = _HEADER_BYTES
    while at < len(query) and 0 < (length := query[at]) < 64:
        yield query[at + 1 : at + 1 + length]
        at += 1 + length


def _refusal(query: bytes, code: int) -> bytes:
    """Return a response without records: the header and the question of the query."""
    end = _HEADER_BYTES + sum(1 + len(label) for label in _labels(query)) + 1 + 4
    recursion_desired = query[2] & 1
    flags = bytes([0x80 | recursion_desired, 0x80 | code])
    return query[:2] + flags + b"\0\1\0\0\0\0\0\0" + query[_HEADER_BYTES:end]
