"""The HTTP side of the controller: metrics, liveness, readiness. It never writes anything."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from dlctl.errors import ConfigError


@asynccontextmanager
async def serving(
    bind_address: str,
    registry: CollectorRegistry,
    *,
    ready: Callable[[], bool],
    healthy: Callable[[], bool],
) -> AsyncIterator[str]:
    """Serve ``/metrics``, ``/healthz`` and ``/readyz`` for the duration of the block.

    ``bind_address`` is ``host:port``; yields the URL, with the port that port 0 became.
    """
    host, port = _parsed(bind_address)
    app = web.Application()
    app.router.add_get("/metrics", _metrics(registry))
    app.router.add_get("/healthz", _check(healthy, "unhealthy"))
    app.router.add_get("/readyz", _check(ready, "not ready"))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(f"cannot serve metrics on {bind_address}: {error}") from error
        yield f"http://{host or 'localhost'}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _metrics(registry: CollectorRegistry) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.Response:
        response = web.Response(body=generate_latest(registry))
        response.headers["Content-Type"] = CONTENT_TYPE_LATEST
        return response

    return answer


def _check(
    passes: Callable[[], bool], failure: str
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok") if passes() else web.Response(status=500, text=failure)

    return answer


def _parsed(bind_address: str) -> tuple[str | None, int]:
    host, _, port = bind_address.rpartition(":")
    if not port.isdecimal():
        raise ConfigError(f"bind-address is {bind_address!r}: give host:port or :port")
    return host.strip("[]") or None, int(port)
