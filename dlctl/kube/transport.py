"""Requests over one aiohttp session: timeouts, credentials, and what is tried again.

Knows paths and bytes, nothing of objects. aiohttp's errors end here.
"""

import asyncio
import errno
import random
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp
import attrs
from yarl import URL

from dlctl.kube import gate
from dlctl.kube.config import ClusterConfig
from dlctl.kube.credentials import Access
from dlctl.kube.errors import (
    ApiError,
    DisconnectedError,
    RefusedError,
    UnauthorizedError,
    UnreachableError,
    error_from,
)
from dlctl.kube.pace import TokenBucket
from dlctl.kube.retries import delay_s
from dlctl.metrics import Metrics

CONNECT_S: Final = 10.0


@attrs.frozen
class Request:
    """One request; ``silence_s`` is for streams: how long nothing at all may come."""

    method: str
    path: str
    params: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes | None = attrs.field(default=None, repr=False)
    media_type: str = "application/json"
    silence_s: float | None = None


class Transport:
    """One HTTP session with one API server, to be used as a context manager."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        user_agent: str,
        metrics: Metrics,
        timeout_s: float,
        may_write: gate.MayWrite | None,
        limit: TokenBucket | None,
    ) -> None:
        self._config = config
        self._host = urlsplit(config.server).netloc
        self._user_agent = user_agent
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._may_write = may_write
        self._limit = limit
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                socket_factory=partial(_kept_alive, forget_unsent=self._may_write is not None)
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": self._user_agent,
                "Accept": "application/json",
                # Inside a cluster, unpacking costs more than the bytes it saves.
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def send(self, request: Request) -> bytes:
        """Return the body of a success; what is safe to try again has then been tried."""
        limits = aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=CONNECT_S)
        attempt = 0
        while True:
            try:
                async with self._authorized(request, limits) as response:
                    with _translated(request):
                        body = await response.read()
            except (ApiError, UnreachableError) as error:
                pause_s = delay_s(request.method, error, attempt, random.random())
                if pause_s is None:
                    raise
                self._count_retry(request, error)
            else:
                self._observe_bytes(request, body)
                return body
            attempt += 1
            await asyncio.sleep(pause_s)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the chunks of an answer without end; nothing is tried again."""
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=request.silence_s
        )
        async with self._authorized(request, limits) as response:
            async with aclosing(_chunks(request, response)) as chunks:
                yield chunks

    @asynccontextmanager
    async def _authorized(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the answer to a success; credentials that were refused are renewed once."""
        credentials = self._config.credentials
        access = await credentials.access()
        response = await self._send_once(request, limits, access)
        try:
            try:
                await _raise_for_status(request, response)
            except UnauthorizedError:
                renewed = await credentials.access(refused=access)
                if renewed is access:
                    raise
                response.release()
                response = await self._send_once(request, limits, renewed)
                await _raise_for_status(request, response)
            yield response
        finally:
            # Closed rather than released: the rest of a stream will never be read.
            response.close()

    async def _send_once(
        self, request: Request, limits: aiohttp.ClientTimeout, access: Access
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is used outside of its `async with` block")
        if self._limit:
            waited_s = await self._limit.take()
            self._metrics.rest_client_rate_limiter_duration_seconds.labels(
                request.method, self._host
            ).observe(waited_s)
        headers = dict(access.headers)
        if request.body is not None:
            headers["Content-Type"] = request.media_type
        body: bytes | gate.HeldBody | None = request.body
        if self._may_write and request.method != "GET":
            body = gate.held(self._may_write, request.body)
        started = time.monotonic()
        with _translated(request):
            response = await self._session.request(
                request.method,
                # Already quoted where it must be: quoting again would spoil a selector.
                URL(self._config.server + request.path),
                params=request.params,
                data=body,
                headers=headers,
                timeout=limits,
                ssl=access.tls or True,
                server_hostname=self._config.tls_server_name,
                proxy=self._config.proxy,
                # A redirect would carry the token to wherever it points.
                allow_redirects=False,
            )
        metrics, host = self._metrics, self._host
        metrics.rest_client_requests_total.labels(response.status, request.method, host).inc()
        metrics.rest_client_request_duration_seconds.labels(request.method, host).observe(
            time.monotonic() - started
        )
        return response

    def _observe_bytes(self, request: Request, answer: bytes) -> None:
        labels = (request.method, self._host)
        sent = len(request.body or b"")
        self._metrics.rest_client_request_size_bytes.labels(*labels).observe(sent)
        self._metrics.rest_client_response_size_bytes.labels(*labels).observe(len(answer))

    def _count_retry(self, request: Request, error: ApiError | UnreachableError) -> None:
        code = error.code if isinstance(error, ApiError) else "<error>"
        self._metrics.rest_client_request_retries_total.labels(
            code, request.method, self._host
        ).inc()


async def _raise_for_status(request: Request, response: aiohttp.ClientResponse) -> None:
    if response.status >= 300:
        with _translated(request):
            body = await response.read()
        raise error_from(response.status, response.headers, body)


async def _chunks(request: Request, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    with _translated(request):
        async for chunk in response.content.iter_any():
            yield chunk


@contextmanager
def _translated(request: Request) -> Iterator[None]:
    """Turn aiohttp's errors into ours, which name the request but not what it carried."""
    what = f"{request.method} {request.path}"
    try:
        yield
    except TimeoutError as error:
        raise UnreachableError(f"{what}: no answer in time") from error
    except aiohttp.ClientConnectorError as error:
        if error.os_error.errno == errno.ECONNREFUSED:
            raise RefusedError(f"{what}: {error}") from error
        raise UnreachableError(f"{what}: {error}") from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, OSError) as error:
        raise DisconnectedError(f"{what}: {error}") from error
    except aiohttp.ClientError as error:
        raise UnreachableError(f"{what}: {error}") from error


def _kept_alive(address: tuple[Any, ...], *, forget_unsent: bool) -> socket.socket:
    """Return a socket that notices within a minute that the other side is gone.

    One that is to forget what is unsent leaves nothing behind for the system to deliver, however
    the process ends: after an outage that could be a minute later, under another leader.
    """
    family, type_, protocol, *_ = address
    connection = socket.socket(family, type_, protocol)
    if forget_unsent:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, gate.AT_ONCE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The names differ between systems, and where there is none the default has to do.
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if option := getattr(socket, name, None):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection
