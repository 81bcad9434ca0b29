"""Requests over one aiohttp session: timeouts, credentials, retries.

Knows paths and bytes, not objects. aiohttp's errors end here.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cache
from typing import Final, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import attrs
from yarl import URL

from dlctl.kube import write_fence
from dlctl.kube.config import ClusterConfig
from dlctl.kube.connections import CONNECT_TIMEOUT_S, connector, translate_errors
from dlctl.kube.credentials import Access
from dlctl.kube.errors import (
    ApiError,
    ThrottledError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnreachableError,
    error_from,
)
from dlctl.kube.flowcontrol.rate_limiter import RateLimiter
from dlctl.kube.flowcontrol.write_limiter import WriteLimiter, write_flow
from dlctl.kube.limited_reader import LimitedReader
from dlctl.kube.retries import delay_s
from dlctl.kube.streams import websockets
from dlctl.metrics import Metrics

T = TypeVar("T")

# Many may be due at once, and each takes milliseconds.
_LARGE_BODY_BYTES: Final = 64 << 10


@attrs.frozen
class Request:
    """One request; ``idle_timeout_s`` is the read timeout of a stream."""

    method: str
    path: str
    params: Mapping[str, str] | Sequence[tuple[str, str]] = attrs.field(factory=dict)
    body: bytes | None = attrs.field(default=None, repr=False)
    media_type: str = "application/json"
    idle_timeout_s: float | None = None
    # True if other writes go first.
    is_low_priority: bool = False
    # The timeout of a request on many objects, which takes long on any server; its response is not
    # kept. None for the client's timeout.
    timeout_s: float | None = None
    # Of the response: a longer one raises ResponseTooLargeError.
    max_bytes: int | None = None
    # Renders the body once it is the turn of the write: until then, a large body takes no memory.
    render: Callable[[], bytes] | None = attrs.field(default=None, repr=False)

    @property
    def description(self) -> str:
        """Return its name in errors, without its contents, which may be secret."""
        return f"{self.method} {self.path}"


class Transport:
    """One HTTP session with one API server, to be used as a context manager."""

    def __init__(  # noqa: PLR0913 - each is set by some caller.
        self,
        config: ClusterConfig,
        *,
        user_agent: str,
        metrics: Metrics,
        timeout_s: float,
        max_retries: int,
        may_write: write_fence.MayWrite | None,
        rate_limiter: RateLimiter | None,
    ) -> None:
        self.write_limiter = WriteLimiter()
        self._config = config
        self._host = urlsplit(config.server).netloc
        self._user_agent = user_agent
        # With labels, whose look-up takes longer than to count.
        self._request_count = cache(metrics.rest_client_requests_total.labels)
        self._retry_count = cache(metrics.rest_client_request_retries_total.labels)
        self._waited_s = cache(metrics.rest_client_rate_limiter_duration_seconds.labels)
        self._lasted_s = cache(metrics.rest_client_request_duration_seconds.labels)
        self._sent_bytes = cache(metrics.rest_client_request_size_bytes.labels)
        self._received_bytes = cache(metrics.rest_client_response_size_bytes.labels)
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._may_write = may_write
        self._rate_limiter = rate_limiter
        self._rendering = asyncio.Lock()
        self._limited_reader = LimitedReader()
        self._session: aiohttp.ClientSession | None = None
        self._websocket_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=connector(self._may_write),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": self._user_agent,
                "Accept": "application/json",
                # Inside a cluster, decompression costs more than the saved bytes.
                "Accept-Encoding": "identity",
            },
        )
        # WebSockets are long-lived and must not use up the connections of requests.
        self._websocket_session = websockets.session(self._user_agent, self._may_write)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._session, self._websocket_session):
            if session:
                await session.close()

    async def send(self, request: Request) -> bytes:
        """Return the body of a successful response, after retries where they are safe."""
        attempt = 0
        while True:
            try:
                await self._throttle(request)
                if request.method == "GET":
                    return await self._send_now(request)
                queued = time.monotonic()
                takes_long = request.timeout_s is not None
                slot = self.write_limiter.slot(
                    is_low_priority=request.is_low_priority, takes_long=takes_long
                )
                async with slot:
                    self._observe_wait(request, time.monotonic() - queued)
                    return await self._send_now(request)
            except (ApiError, UnreachableError) as error:
                pause_s = delay_s(request.method, error, attempt, random.random())
                if pause_s is None or attempt == self._max_retries:
                    raise
                self._count_retry(request, error)
                is_load_shedding = isinstance(error, ThrottledError) and error.is_load_shedding
            if is_load_shedding and request.method != "GET":
                await self.write_limiter.pause(pause_s, attempt)
            else:
                await asyncio.sleep(pause_s)
            attempt += 1

    async def _send_now(self, request: Request) -> bytes:
        timeout_s = request.timeout_s or self._timeout_s
        limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        if request.render:
            request = attrs.evolve(request, body=await self._rendered(request.render))
        if request.body and (flow := write_flow.get()):
            flow.add_bytes(len(request.body))
        async with self._authorized(request, limits) as response:
            with translate_errors(request.description):
                if request.max_bytes is not None:
                    body = await self._limited_reader.read(response, request.max_bytes)
                elif request.timeout_s is None:
                    body = await response.read()
                else:
                    body = b""
                    async for _ in response.content.iter_any():
                        pass
        self._observe_bytes(request, body)
        return body

    async def _rendered(self, render: Callable[[], bytes]) -> bytes:
        """Return a body; after a large one, the event loop runs before another is rendered."""
        async with self._rendering:
            body = render()
            if len(body) > _LARGE_BODY_BYTES:
                await asyncio.sleep(0)
        return body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the chunks of a streamed response; not retried."""
        await self._throttle(request)
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=request.idle_timeout_s
        )
        async with self._authorized(request, limits) as response:
            async with aclosing(_chunks(request, response)) as chunks:
                yield chunks

    @asynccontextmanager
    async def open_websocket(
        self, request: Request, protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Yield a WebSocket that speaks one of the protocols; not retried.

        Opened only while writes are allowed; closed at once at the end of the block.
        """
        opened = await self._with_access(lambda access: self._upgraded(request, protocols, access))
        try:
            yield opened
        except BaseException:
            # A closing handshake would read the data still in flight, which may be endless.
            websockets.abort(opened)
            raise
        finally:
            await websockets.close(opened)

    async def _upgraded(
        self, request: Request, protocols: Sequence[str], access: Access
    ) -> aiohttp.ClientWebSocketResponse:
        if self._websocket_session is None:
            raise RuntimeError("the client must be used inside its `async with` block")
        await self._throttle(request)
        started = time.monotonic()
        try:
            with translate_errors(request.description):
                opened = await self._websocket_session.ws_connect(
                    URL(self._config.server + request.path).extend_query(request.params),
                    protocols=protocols,
                    headers=access.headers,
                    timeout=aiohttp.ClientWSTimeout(ws_close=0.0),
                    ssl=access.tls or True,
                    server_hostname=self._config.tls_server_name,
                    proxy=self._config.proxy,
                )
        except ApiError as error:
            self._observe_response(request, error.code, started)
            raise
        self._observe_response(request, 101, started)
        if opened.protocol is None:
            await websockets.close(opened)
            raise UnexpectedResponseError(
                f"{request.description}: the server supports none of the protocols"
            )
        return opened

    @asynccontextmanager
    async def _authorized(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield a successful response."""
        response = await self._with_access(
            lambda access: self._send_checked(request, limits, access)
        )
        try:
            yield response
        finally:
            _disconnect(response)

    async def _with_access(self, send: Callable[[Access], Awaitable[T]]) -> T:
        """Return the result of a request; rejected credentials are renewed once."""
        credentials = self._config.credentials
        access = await credentials.access()
        try:
            return await send(access)
        except UnauthorizedError:
            renewed = await credentials.access(rejected=access)
            if renewed is access:
                raise
        return await send(renewed)

    async def _send_checked(
        self, request: Request, limits: aiohttp.ClientTimeout, access: Access
    ) -> aiohttp.ClientResponse:
        """Return a successful response of which only the headers have been read."""
        response = await self._send_once(request, limits, access)
        try:
            await _raise_for_status(request, response)
        except BaseException:
            _disconnect(response)
            raise
        return response

    async def _send_once(
        self, request: Request, limits: aiohttp.ClientTimeout, access: Access
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client must be used inside its `async with` block")
        headers = dict(access.headers)
        if request.body is not None:
            headers["Content-Type"] = request.media_type
        body: bytes | write_fence.FencedBody | None = request.body
        if self._may_write and request.method != "GET":
            body = write_fence.fenced(self._may_write, request.body)
        started = time.monotonic()
        with translate_errors(request.description):
            response = await self._session.request(
                request.method,
                # Already quoted where necessary: quoting again would break selectors.
                URL(self._config.server + request.path),
                params=request.params,
                data=body,
                headers=headers,
                timeout=limits,
                ssl=access.tls or True,
                server_hostname=self._config.tls_server_name,
                proxy=self._config.proxy,
                # A redirect would send the token wherever it points.
                allow_redirects=False,
            )
        self._observe_response(request, response.status, started)
        return response

    async def _throttle(self, request: Request) -> None:
        if self._rate_limiter:
            self._observe_wait(request, await self._rate_limiter.wait())

    def _observe_wait(self, request: Request, waited_s: float) -> None:
        self._waited_s(request.method, self._host).observe(waited_s)

    def _observe_response(self, request: Request, code: int, started: float) -> None:
        self._request_count(code, request.method, self._host).inc()
        self._lasted_s(request.method, self._host).observe(time.monotonic() - started)

    def _observe_bytes(self, request: Request, response: bytes) -> None:
        self._sent_bytes(request.method, self._host).observe(len(request.body or b""))
        self._received_bytes(request.method, self._host).observe(len(response))

    def _count_retry(self, request: Request, error: ApiError | UnreachableError) -> None:
        code = error.code if isinstance(error, ApiError) else "<error>"
        self._retry_count(code, request.method, self._host).inc()


async def _raise_for_status(request: Request, response: aiohttp.ClientResponse) -> None:
    if response.status >= 300:
        with translate_errors(request.description):
            body = await response.read()
        raise error_from(response.status, response.headers, body)


async def _chunks(request: Request, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    with translate_errors(request.description):
        async for chunk in response.content.iter_any():
            yield chunk


def _disconnect(response: aiohttp.ClientResponse) -> None:
    """End a response whose rest is not read, and its connection at once.

    If it were closed as usual, TLS would wait for the server to end its part, for up to 30 s.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
