"""A proxy before a real API server that counts requests and injects faults.

It supports the faults of the embedded server, with one difference: a silent watch stops after the
server's first data, which may not be all of the initial events.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp
import attrs
from aiohttp import web
from yarl import URL

from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.faults import Fault, Faults, abort, end, faulty_stream, inject
from dlctl.local.apiserver.handler import AuditKey, LargeRequest, error_response, to_api_request
from dlctl.local.apiserver.request_info import parse_path
from dlctl.local.apiserver.requests import ApiRequest
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent

# Hop-by-hop headers, and those about the body, which are set again here.
_OURS: Final = frozenset(
    {"authorization", "connection", "content-length", "host", "transfer-encoding", "keep-alive"}
)
_NO_FAULT: Final = Fault()
_READS: Final = frozenset({"get", "list", "watch"})
# A line of a watch is as large as its object.
_LINE_BYTES: Final = 2**22
_GONE_S: Final = 0.05


@attrs.define(eq=False)
class Proxy:
    """The handler of all requests of the controllers under test."""

    upstream: aiohttp.ClientSession
    server: str
    # The newest known version; stale lists are older.
    version: int = 0
    faults: Faults = attrs.field(factory=Faults)
    audit: Counter[AuditKey] = attrs.field(factory=Counter)
    # Writes without a response so far.
    open_write_count: int = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._response(request)
        except StatusError as error:
            return error_response(error)
        except aiohttp.ClientError as error:
            # To a client it makes no difference whether the server or the proxy broke the
            # connection.
            raise abort(request) from error

    def note(self, change: StorageEvent) -> None:
        self.version = max(self.version, change.revision)

    async def _response(self, request: web.BaseRequest) -> web.StreamResponse:
        wanted = parse_path(request.path)
        if wanted is None:
            return await self._discovery(request)
        call = await to_api_request(request, wanted)
        self.audit[AuditKey(call.user_agent, call.verb, wanted.qualified, wanted.subresource)] += 1
        if call.verb in _READS:
            return await self._passed_on(request, call)
        self.open_write_count += 1
        try:
            return await self._passed_on(request, call)
        finally:
            self.open_write_count -= 1

    async def _passed_on(self, request: web.BaseRequest, call: ApiRequest) -> web.StreamResponse:
        fault = self.faults.match(call) or _NO_FAULT
        await inject(request, fault)
        url = self._url(request, call, fault)
        async with self.upstream.request(
            request.method, url, data=call.body or None, headers=_passed(request.headers)
        ) as answer:
            if call.verb == "watch" and answer.status == 200:
                return await _streamed(request, answer, fault)
            body = await answer.read()
        if (instead := await end(request, fault)) is not None:
            return instead
        return web.Response(body=body, status=answer.status, headers=_passed(answer.headers))

    async def _discovery(self, request: web.BaseRequest) -> web.Response:
        """Pass on a request for no resource: which groups and versions the server has."""
        url = URL(self.server + request.raw_path, encoded=True)
        headers = _passed(request.headers)
        async with self.upstream.request(request.method, url, headers=headers) as answer:
            body = await answer.read()
        return web.Response(body=body, status=answer.status, headers=_passed(answer.headers))

    def _url(self, request: web.BaseRequest, api_request: ApiRequest, fault: Fault) -> URL:
        url = URL(self.server + request.raw_path, encoded=True)
        may_be_old = api_request.verb == "list" and api_request.query.get("resourceVersion")
        if not fault.stale_by or not may_be_old:
            return url
        version = max(self.version - fault.stale_by, int(may_be_old), 1)
        return url.update_query(resourceVersion=str(version), resourceVersionMatch="Exact")


@asynccontextmanager
async def serve_proxy(config: ClusterConfig) -> AsyncIterator[tuple[Proxy, str]]:
    """Serve a proxy to a server for the duration of the block; yield it with its address."""
    access = await config.credentials.access()
    connector = aiohttp.TCPConnector(ssl=access.tls or True, limit=0)
    session = aiohttp.ClientSession(
        connector=connector,
        headers=access.headers,
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        read_bufsize=_LINE_BYTES,
    )
    async with session as upstream:
        proxy = Proxy(upstream, config.server)
        runner = web.ServerRunner(
            web.Server(
                proxy, request_factory=LargeRequest, handler_cancellation=True, access_log=None
            ),
            shutdown_timeout=0.1,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield proxy, f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
    # Aborted TLS connections need some iterations of the loop to close.
    await asyncio.sleep(_GONE_S)


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OURS}


async def _streamed(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, fault: Fault
) -> web.StreamResponse:
    if (instead := await end(request, fault)) is not None:
        return instead
    response = web.StreamResponse(headers=_passed(answer.headers))
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        # A client that has disconnected is not an error.
        with suppress(ConnectionResetError):
            async for chunk in faulty_stream(_lines(answer.content), fault):
                await response.write(chunk)
            await response.write_eof()
    finally:
        if answer.connection and answer.connection.transport:
            # Closing gracefully would wait for the server, and the loop may end before that.
            answer.connection.transport.abort()
    return response


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield data as soon as it arrives, but only whole lines."""
    begun = b""
    async for chunk in content.iter_any():
        whole, newline, begun = (begun + chunk).rpartition(b"\n")
        if newline:
            yield whole + newline
    # Data after the last line was cut off in transit.
