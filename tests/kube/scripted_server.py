"""A server with scripted responses, which records the requests."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import msgspec
from aiohttp import web

from tests.support.http_server import served

TOKEN = "very-secret-token"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.frozen
class SeenRequest:
    """A request as received by the server."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@attrs.define
class Server:
    """Sends the scripted responses in order, and repeats the last one."""

    url: str = ""
    handlers: deque[Handler] = attrs.field(factory=deque)
    seen: list[SeenRequest] = attrs.field(factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = msgspec.json.decode(content) if content else None
        self.seen.append(
            SeenRequest(request.method, request.path, dict(request.query), headers, body)
        )
        handler = self.handlers.popleft() if len(self.handlers) > 1 else self.handlers[0]
        return await handler(request)


def replies(body: Any, code: int = 200, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(
            status=code, body=content, headers=named, content_type="application/json"
        )

    return handler


def fails(code: int, reason: str, message: str = "no", **headers: str) -> Handler:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return replies(status, code, **headers)


async def resets(request: web.Request) -> web.StreamResponse:
    """Break the connection instead of responding."""
    if request.transport:
        request.transport.abort()
    return web.Response()


async def garbles(request: web.Request) -> web.StreamResponse:
    """Send what is no frame of a WebSocket."""
    if request.transport:
        request.transport.write(b"\xf0\x00")
    return web.Response()


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with served(app) as server.url:
        yield server
