"""HTTP server for metrics, liveness and readiness. Nothing here writes to the cluster.

A health endpoint returns ``ok`` or the failed check; ``?verbose`` lists all checks, ``?exclude=``
skips one, and each has a path of its own below the endpoint.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import Final

import attrs
from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from dlctl.errors import ConfigError
from dlctl.http_logger import HTTP_LOGGER
from dlctl.probes.authorization import Authorize, allow_all
from dlctl.probes.health_checks import Checks, health_response
from dlctl.tasks import run_to_end

# Rendering takes tens of milliseconds, and anybody may request it.
METRICS_CACHE_S: Final = 1.0
# Anybody in the cluster may open them and do nothing, and a process has few sockets. Probes and
# scrapers need some at the same time, for less than a second.
MAX_CONNECTIONS: Final = 32
# What one read may take of a connection, which the kernel doubles. The error of a malformed request
# quotes all of it, and is in memory until the next garbage collection.
_RECEIVE_BUFFER_BYTES: Final = 4 << 10
RenderMetrics = Callable[[], Awaitable[bytes]]
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.frozen(kw_only=True)
class Health:
    """The checks of liveness and readiness, by name."""

    live: Checks = attrs.field(factory=dict)
    ready: Checks = attrs.field(factory=dict)


@asynccontextmanager
async def serving(
    bind_address: str,
    render_metrics: RenderMetrics | None,
    health: Health | None,
    authorize: Authorize = allow_all,
) -> AsyncIterator[str]:
    """Serve ``/metrics``, ``/healthz`` and ``/readyz`` for the duration of the block.

    ``bind_address`` is ``host:port``; yields the URL, with the actual port if it was 0.
    ``render_metrics`` returns the metrics in the text format of Prometheus; those that are served
    are up to a second old. ``authorize`` guards them; probes need no credentials. Endpoints that
    are None are not served. One connection too many ends the oldest.
    """
    host, port = _parse_address(bind_address)
    app = web.Application()
    if render_metrics:
        app.router.add_get("/metrics", _metrics(render_metrics, authorize))
    if health:
        for path, checks in (("healthz", health.live), ("readyz", health.ready)):
            app.router.add_get(f"/{path}", _health(path, checks))
            app.router.add_get(f"/{path}/{{check}}", _health(path, checks))
    # A request whose connection has ended waits for no review.
    # A body, which no request here has, is not read: it may have no end.
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=HTTP_LOGGER,
        handler_cancellation=True,
        lingering_time=0,
    )
    await runner.setup()
    try:
        try:
            loop = asyncio.get_running_loop()
            listener = await loop.create_server(_limited(runner.server), host, port)
        except OSError as error:
            raise ConfigError(f"cannot serve on {bind_address}: {error}") from error
        with closing(listener):
            for listening in listener.sockets:
                # Accepted connections inherit it.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
            yield f"http://{host or 'localhost'}:{listener.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


def _limited(server: web.Server | None) -> Callable[[], asyncio.Protocol]:
    """Return the protocol factory of a server that keeps only the newest connections."""
    if server is None:
        raise RuntimeError("the runner must be set up first")

    def connect() -> asyncio.Protocol:
        for oldest in server.connections[: 1 - MAX_CONNECTIONS]:
            if oldest.transport is not None:
                # Not closed: what its peer does not read would never be sent.
                oldest.transport.abort()
        return server()

    return connect


def _metrics(render_metrics: RenderMetrics, authorize: Authorize) -> _Handler:
    body, rendered_at = b"", float("-inf")
    rendering = asyncio.Lock()

    async def render(now: float) -> None:
        nonlocal body, rendered_at
        body, rendered_at = await render_metrics(), now

    async def handle(request: web.Request) -> web.Response:
        await authorize(request.headers.get("Authorization", ""))
        # One request renders; concurrent ones get the same result.
        async with rendering:
            now = asyncio.get_running_loop().time()
            if now - rendered_at >= METRICS_CACHE_S:
                # Also for others: clients that end their connections must not have it done again.
                await run_to_end(render(now))
        response = web.Response(body=body)
        response.headers["Content-Type"] = CONTENT_TYPE_LATEST
        return response

    return handle


def _health(path: str, checks: Checks) -> _Handler:
    # The response itself is also a check, of the event loop.
    all_checks = {"ping": lambda: True, **checks}

    async def handle(request: web.Request) -> web.Response:
        selected = all_checks
        if name := request.match_info.get("check"):
            selected = {name: all_checks[name]} if name in all_checks else {}
        if not selected:
            return web.Response(status=404, text=f"unknown check {name}\n")
        return health_response(path, selected, request.query)

    return handle


def _parse_address(bind_address: str) -> tuple[str | None, int]:
    host, _, port = bind_address.rpartition(":")
    if not port.isdecimal():
        raise ConfigError(f"cannot serve on {bind_address!r}: use host:port or :port")
    return host.strip("[]") or None, int(port)
