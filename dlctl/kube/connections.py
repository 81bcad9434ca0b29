"""Connections to an API server, and the translation of aiohttp's errors about them.

Knows nothing of what is sent over them.
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
    WriteFencedError,
)

CONNECT_TIMEOUT_S: Final = 10.0


def connector(may_write: write_fence.MayWrite | None) -> aiohttp.TCPConnector:
    """Return a pool of connections; what is sent over them is limited elsewhere."""
    return aiohttp.TCPConnector(socket_factory=socket_factory(may_write), limit=0)


@contextmanager
def translate_errors(request: str) -> Iterator[None]:
    """Translate aiohttp's errors into ours, which name the request but not its contents."""
    try:
        yield
    except TimeoutError as error:
        raise UnreachableError(f"{request}: no response in time") from error
    except aiohttp.ClientConnectorError as error:
        # Its own text shows the TLS context as Python does.
        is_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        where = f"{'the proxy ' if is_proxy else ''}{error.host}:{error.port}"
        cause = error.os_error
        if cause.errno == errno.ECONNREFUSED:
            raise ConnectRefusedError(f"{request}: {where} refuses connections") from error
        message = f"{request}: cannot connect to {where}: {cause.strerror or cause}"
        raise UnreachableError(message) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, OSError) as error:
        raise DisconnectedError(f"{request}: {error}") from error
    except aiohttp.WSServerHandshakeError as error:
        # The original message repeats the query, which contains a command; so does the next one.
        raise UnexpectedResponseError(f"{request}: {error.message}") from None
    except aiohttp.ClientResponseError as error:
        raise UnreachableError(f"{request}: {error.message}") from None
    except aiohttp.ClientError as error:
        if isinstance(error.__cause__, WriteFencedError):
            # aiohttp wraps whatever a body raises while it is sent.
            raise error.__cause__ from None
        raise UnreachableError(f"{request}: {error}") from error


def keepalive_socket(address: tuple[Any, ...], *, forget_unsent: bool) -> socket.socket:
    """Return a socket that detects within a minute that the peer is gone.

    With ``forget_unsent``, closing drops unsent data, however the process ends: after an outage the
    system could deliver it a minute later, under another leader.
    """
    family, type_, protocol, *_ = address
    connection = socket.socket(family, type_, protocol)
    if forget_unsent:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, write_fence.NO_LINGER)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The names differ between systems; where one is missing, the default applies.
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if option := getattr(socket, name, None):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


def socket_factory(
    may_write: write_fence.MayWrite | None,
) -> Callable[[tuple[Any, ...]], socket.socket]:
    """Return the socket factory of a client, with unsent writes dropped if it is fenced."""
    return partial(keepalive_socket, forget_unsent=may_write is not None)
