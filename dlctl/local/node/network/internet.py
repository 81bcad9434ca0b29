"""Connections of isolated pods to the outside, made by dlctl from the machine's own network.

Rules in the pods' network redirect every TCP connection that leaves it to one socket. Other
protocols do not leave it. There is no way in: nothing listens outside.
"""

import asyncio
import ipaddress
import socket
import struct
from contextlib import suppress
from typing import Final, NoReturn

from dlctl.local.node.network.addresses import CLUSTER_NETWORKS, DNS_PORT, NODE_IP
from dlctl.local.node.network.name_server import SocketAddress, name_servers

_SO_ORIGINAL_DST: Final = 80
_CHUNK_BYTES: Final = 1 << 18
# Each takes two of the 1,024 files that a process may usually open; others wait for their turn.
_CONNECTION_LIMIT: Final = 300
_ACCEPT_RETRY_S: Final = 0.5
# Zero seconds to send what is left: the peer gets a reset.
_RESET: Final = struct.pack("ii", 1, 0)
_NETWORKS: Final = tuple(map(ipaddress.IPv4Network, CLUSTER_NETWORKS))


async def relay_connections(listener: socket.socket) -> NoReturn:
    """Connect each accepted connection with its original destination, until cancelled."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    slots = asyncio.Semaphore(_CONNECTION_LIMIT)

    async def serve(accepted: socket.socket) -> None:
        try:
            with accepted:
                await _relay(accepted)
        finally:
            slots.release()

    async with asyncio.TaskGroup() as group:
        while True:
            await slots.acquire()
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError:
                # Too many open files, or a connection that ended before it was accepted.
                slots.release()
                await asyncio.sleep(_ACCEPT_RETRY_S)
                continue
            group.create_task(serve(accepted), name="connection to the outside")


async def _relay(accepted: socket.socket) -> None:
    accepted.setblocking(False)
    try:
        family, address = _destination(accepted)
        with socket.socket(family) as peer:
            peer.setblocking(False)
            await asyncio.get_running_loop().sock_connect(peer, address)
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(accepted, peer))
                both.create_task(_copy(peer, accepted))
    except (OSError, ExceptionGroup):
        with suppress(OSError):
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _destination(accepted: socket.socket) -> tuple[int, SocketAddress]:
    """Return the address family and address that the program of a pod has connected to."""
    original = accepted.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
    port, packed = struct.unpack("!2xH4s8x", original)
    ip = ipaddress.IPv4Address(packed)
    if (str(ip), port) == (NODE_IP, DNS_PORT):
        return name_servers()[0]
    if any(ip in network for network in _NETWORKS):
        raise OSError(f"{ip} is not outside")
    return socket.AF_INET, (str(ip), port)


async def _copy(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    while count := await loop.sock_recv_into(source, buffer):
        await loop.sock_sendall(sink, buffer[:count])
    sink.shutdown(socket.SHUT_WR)
