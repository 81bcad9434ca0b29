"""Connections to programs in pods, over sockets that were opened in the pod's network."""

import asyncio
import os
import socket
import ssl

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(
    opened: socket.socket, address: tuple[str, int], context: ssl.SSLContext | None = None
) -> Connection:
    """Connect a socket, which is closed if that fails; a ``context`` stands for TLS.

    :raises OSError: if nothing listens at the address.
    """
    try:
        opened.setblocking(False)
        await _sock_connect(opened, address)
        server_hostname = address[0] if context else None
        return await asyncio.open_connection(
            sock=opened, ssl=context, server_hostname=server_hostname
        )
    except BaseException:
        opened.close()
        raise


async def _sock_connect(opened: socket.socket, address: tuple[str, int]) -> None:
    try:
        await asyncio.get_running_loop().sock_connect(opened, address)
    except socket.gaierror:
        raise
    except OSError as error:
        # Without the address, which asyncio adds.
        number = error.errno or 0
        raise OSError(number, os.strerror(number)) from error
