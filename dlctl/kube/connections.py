"""How connections to an API server are made, and what aiohttp's errors about them become.

Nothing here knows what is sent over them.
"""

import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import aiohttp

from dlctl.kube import write_fence
from dlctl.kube.errors import (
    ConnectRefusedError,
    DisconnectedError,
    UnexpectedResponseError,
    UnreachableError,
)

CONNECT_TIMEOUT_S: Final = 10.0


def connector(may_write: write_fence.MayWrite | None) -> aiohttp.TCPConnector:
    """Return a source of connections, of which there are only so many at a time."""
    return aiohttp.TCPConnector(socket_factory=socket_factory(may_write))


@contextmanager
def translate_errors(request: str) -> Iterator[None]:
    """Turn aiohttp's errors into ours, which name the request but not what it carried."""
    try:
        yield
    except TimeoutError as error:
        raise UnreachableError(f"{request}: no answer in time") from error
    except aiohttp.ClientConnectorError as error:
        if error.os_error.errno == errno.ECONNREFUSED:
            raise ConnectRefusedError(f"{request}: {error}") from error
        raise UnreachableError(f"{request}: {error}") from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, OSError) as error:
        raise DisconnectedError(f"{request}: {error}") from error
    except aiohttp.WSServerHandshakeError as error:
        # Its own words repeat the query, in which a command travels; so do the next one's.
        raise UnexpectedResponseError(f"{request}: {error.message}") from None
    except aiohttp.ClientResponseError as error:
        raise UnreachableError(f"{request}: {error.message}") from None
    except aiohttp.ClientError as error:
        raise UnreachableError(f"{request}: {error}") from error


def keepalive_socket(address: tuple[Any, ...], *, forget_unsent: bool) -> socket.socket:
    """Return a socket that notices within a minute that the other side is gone.

    One that is to forget what is unsent leaves nothing behind for the system to deliver, however
    the process ends: after an outage that could be a minute later, under another leader.
    """
    family, type_, protocol, *_ = address
    connection = socket.socket(family, type_, protocol)
    if forget_unsent:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, write_fence.NO_LINGER)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The names differ between systems, and where there is none the default has to do.
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if option := getattr(socket, name, None):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


def socket_factory(
    may_write: write_fence.MayWrite | None,
) -> Callable[[tuple[Any, ...]], socket.socket]:
    """Return what makes the sockets of a client that may have to hold its writes."""
    return partial(keepalive_socket, forget_unsent=may_write is not None)
