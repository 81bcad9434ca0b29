"""An API server with scripted responses.

It knows no objects or versions, so it can send what the embedded server never would.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import msgspec
from aiohttp import web

from dlctl.kube.config import ClusterConfig
from tests.support.http_server import served

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
INITIAL_END = {"k8s.io/initial-events-end": "true"}


def pod(name: str, version: int | str = 1, **meta: Any) -> dict[str, Any]:
    """Return a pod; a test names only what it is about."""
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **meta}
    return {"kind": "Pod", "metadata": {**metadata, "resourceVersion": str(version)}}


def listed(
    *items: Any, version: int | str = 10, continue_: str = "", kind: str = "PodList"
) -> Handler:
    """Respond with a list, or a page of it."""
    meta = {"resourceVersion": str(version), "continue": continue_}
    return _json(200, {"kind": kind, "metadata": meta, "items": list(items)})


def error_response(code: int, reason: str, message: str = "", **details: Any) -> Handler:
    """Respond with a Status of a failure."""
    return _json(code, _status(code, reason, message, details))


def _json(code: int, body: Any) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(
            status=code, body=msgspec.json.encode(body), content_type="application/json"
        )

    return handler


def _status(code: int, reason: str, message: str, details: Mapping[str, Any]) -> dict[str, Any]:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return {**status, "message": message or reason, "details": dict(details)}


def added(obj: Any) -> bytes:
    return _event("ADDED", obj)


def modified(obj: Any) -> bytes:
    return _event("MODIFIED", obj)


def deleted(obj: Any) -> bytes:
    return _event("DELETED", obj)


def bookmark(version: int | str, annotations: Mapping[str, str] | None = None) -> bytes:
    meta = {"resourceVersion": str(version), "annotations": annotations, "creationTimestamp": None}
    return _event("BOOKMARK", {"kind": "Pod", "metadata": meta, "spec": {"containers": None}})


def failure(code: int, reason: str, message: str = "", **details: Any) -> bytes:
    """Return an ERROR event."""
    return _event("ERROR", _status(code, reason, message, details))


def _event(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


def watched(*lines: bytes, then: str = "close") -> Handler:
    """Respond with events, then ``close`` the watch, ``hold`` it open or ``cut`` the connection."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if then == "hold":
            await asyncio.Event().wait()
        elif then == "cut" and request.transport:
            request.transport.abort()
        return response

    return handler


@attrs.define
class ScriptedServer:
    """Sends the scripted responses to lists, watches and streamed lists, each in order.

    By default watches are held open, streamed lists are rejected, and the last list is repeated.
    """

    url: str = ""
    lists: deque[Handler] = attrs.field(factory=deque)
    watches: deque[Handler] = attrs.field(factory=deque)
    streams: deque[Handler] = attrs.field(factory=deque)
    # The requests, except unscripted streamed lists.
    seen: list[tuple[str, dict[str, str]]] = attrs.field(factory=list)
    open: int = 0

    @property
    def config(self) -> ClusterConfig:
        return ClusterConfig.with_token(self.url, "secret-token")

    def asked(self, what: str) -> list[dict[str, str]]:
        return [query for kind, query in self.seen if kind == what]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        if query.get("sendInitialEvents") and not self.streams:
            return await error_response(422, "Invalid", "sendInitialEvents is forbidden")(request)
        kind = "stream" if "sendInitialEvents" in query else "watch" if "watch" in query else "list"
        self.seen.append((kind, query))
        if kind == "list":
            return await (self.lists.popleft() if len(self.lists) > 1 else self.lists[0])(request)
        noted = self.streams if kind == "stream" else self.watches
        self.open += 1
        try:
            return await (noted.popleft() if noted else watched(then="hold"))(request)
        finally:
            self.open -= 1


@asynccontextmanager
async def scripted() -> AsyncIterator[ScriptedServer]:
    """Serve for the duration of the block."""
    server = ScriptedServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with served(app) as server.url:
        yield server
