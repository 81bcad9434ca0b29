import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from urllib.parse import urlsplit

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from dlctl.errors import ConfigError
from dlctl.metrics import Metrics
from dlctl.probes import server
from dlctl.probes.exposition import exposition
from dlctl.probes.server import Health, RenderMetrics, serving

Get = Callable[[str], Awaitable[tuple[int, str]]]
HEALTH = Health(
    live={"leadership": lambda: True},
    ready={"pods": lambda: True, "mxjobs.kubeflow.org": lambda: False},
)


async def rendered_metrics() -> bytes:
    return await exposition(Metrics().registry)


@asynccontextmanager
async def served(
    health: Health = HEALTH, render: RenderMetrics = rendered_metrics
) -> AsyncIterator[Get]:
    async with (
        serving("127.0.0.1:0", render, health) as url,
        aiohttp.ClientSession(url) as session,
    ):

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        yield get


async def test_metrics_need_no_token_by_default() -> None:
    async with served() as get:
        status, text = await get("/metrics")
    assert status == 200
    assert "# TYPE leader_election_master_status gauge" in text


@pytest.mark.looptime(noop_cycles=8)
async def test_metrics_are_rendered_at_most_once_a_second() -> None:
    rendered: list[float] = []

    async def counted() -> bytes:
        rendered.append(asyncio.get_running_loop().time())
        return await rendered_metrics()

    async with served(render=counted) as get:
        assert len({await get("/metrics") for _ in range(50)}) == 1
        await asyncio.sleep(1)
        await get("/metrics")
    assert len(rendered) <= 3


async def test_metrics_are_rendered_once_for_clients_that_do_not_wait_for_them() -> None:
    begun, finish, count = asyncio.Event(), asyncio.Event(), 0

    async def slow() -> bytes:
        nonlocal count
        count += 1
        begun.set()
        await finish.wait()
        return b"metrics"

    async with served(render=slow) as get:
        async with asyncio.timeout(30):
            for _ in range(10):
                hasty = asyncio.ensure_future(get("/metrics"))
                await begun.wait()
                await asyncio.sleep(0.01)
                hasty.cancel()
                await asyncio.wait([hasty])
            await asyncio.sleep(0.05)
            finish.set()
            assert await get("/metrics") == (200, "metrics")
    assert count == 1


async def test_malformed_request_is_refused_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served() as get:
        status, _ = await get("/metrics?a=" + "b" * 70_000)
    assert status == 400
    assert caplog.records == []


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: a\r\n", id="half a request"),
        pytest.param(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", id="no reader"),
    ],
)
async def test_probes_are_served_whatever_others_keep_open(sent: bytes) -> None:
    registry = CollectorRegistry()
    Counter("large", "too large to be sent at once " * 400_000, registry=registry)
    render = partial(exposition, registry)
    async with serving("127.0.0.1:0", render, HEALTH) as url, AsyncExitStack() as stack:
        opened = []
        for _ in range(server.MAX_CONNECTIONS + 50):
            connection = stack.enter_context(closing(await _connect(url, sent)))
            opened.append(connection)
        async with aiohttp.ClientSession(url) as session:
            for _ in range(3):
                async with session.get("/healthz", headers={"Connection": "close"}) as response:
                    assert response.status == 200
        ended = [_has_ended(connection) for connection in opened]
    assert ended.index(False) >= 50
    assert sum(ended) <= 53


async def test_malformed_request_is_read_in_small_parts() -> None:
    # The response repeats what was read of it.
    async with serving("127.0.0.1:0", rendered_metrics, HEALTH) as url:
        with closing(await _connect(url, b"")) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            await _send_until_ended(connection, b"\0" * 200_000)
            assert 0 < len(await _received(connection)) < 100_000


async def test_body_without_an_end_is_not_read() -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n"
    async with serving("127.0.0.1:0", rendered_metrics, HEALTH) as url:
        with closing(await _connect(url, request)) as connection:
            async with asyncio.timeout(2):
                while await _send_until_ended(connection, b"x" * 10_000):
                    pass


async def test_requests_of_ended_connections_are_not_kept_waiting() -> None:
    waiting = 0

    async def review(authorization: str) -> None:
        nonlocal waiting
        waiting += 1
        try:
            await asyncio.Event().wait()
        finally:
            waiting -= 1

    async with (
        serving("127.0.0.1:0", rendered_metrics, HEALTH, review) as url,
        AsyncExitStack() as stack,
    ):
        for _ in range(server.MAX_CONNECTIONS + 50):
            request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
            stack.enter_context(closing(await _connect(url, request)))
        await asyncio.sleep(0.05)
        assert 0 < waiting <= server.MAX_CONNECTIONS


async def _connect(url: str, sent: bytes) -> socket.socket:
    loop, address = asyncio.get_running_loop(), urlsplit(url)
    connection = socket.socket()
    connection.setblocking(False)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
    await loop.sock_connect(connection, (address.hostname, address.port))
    await loop.sock_sendall(connection, sent)
    await asyncio.sleep(0.001)
    return connection


async def _send_until_ended(connection: socket.socket, data: bytes) -> bool:
    """Send data; return whether the server still keeps the connection."""
    try:
        async with asyncio.timeout(1):
            await asyncio.get_running_loop().sock_sendall(connection, data)
    except ConnectionError:
        return False
    except TimeoutError:
        # It does not read.
        pass
    return True


async def _received(connection: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(5):
            while part := await asyncio.get_running_loop().sock_recv(connection, 1 << 16):
                received += part
    return received


def _has_ended(connection: socket.socket) -> bool:
    """Return whether the server has ended a connection, without reading what it has sent."""
    try:
        connection.send(b"\r")
        # The answer to the first byte says so.
        connection.send(b"\n")
    except ConnectionError:
        return True
    return False


async def test_passing_health_check_returns_ok() -> None:
    async with served() as get:
        assert await get("/healthz") == (200, "ok")


async def test_verbose_health_check_lists_its_checks() -> None:
    async with served() as get:
        assert await get("/healthz?verbose") == (
            200,
            "[+]ping ok\n[+]leadership ok\nhealthz check passed\n",
        )


async def test_failing_health_check_names_the_failed_check() -> None:
    async with served() as get:
        assert await get("/readyz") == (
            500,
            "[+]ping ok\n[+]pods ok\n[-]mxjobs.kubeflow.org failed\nreadyz check failed\n",
        )


async def test_excluded_check_does_not_count() -> None:
    async with served() as get:
        assert await get("/readyz?exclude=mxjobs.kubeflow.org") == (200, "ok")
        assert "[+]pods excluded: ok" in (await get("/readyz?verbose&exclude=pods"))[1]


async def test_excluding_an_unknown_check_is_reported() -> None:
    async with served() as get:
        assert 'no matches for "tea"' in (await get("/healthz?verbose&exclude=tea"))[1]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/readyz/pods", 200, id="passes"),
        pytest.param("/readyz/mxjobs.kubeflow.org", 500, id="fails"),
        pytest.param("/readyz/tea", 404, id="unknown"),
        pytest.param("/healthz/ping", 200, id="ping"),
    ],
)
async def test_each_check_has_its_own_path(path: str, status: int) -> None:
    async with served() as get:
        assert (await get(path))[0] == status


async def test_leader_past_its_lease_is_not_live() -> None:
    async with served(Health(live={"leadership": lambda: False})) as get:
        assert (await get("/healthz"))[0] == 500


@pytest.mark.parametrize("address", ["", "localhost", ":http", "localhost:"])
async def test_address_without_a_port_is_rejected(address: str) -> None:
    with pytest.raises(ConfigError, match="use host:port or :port"):
        async with serving(address, rendered_metrics, HEALTH):
            pass


async def test_address_in_use_is_an_error() -> None:
    async with serving("127.0.0.1:0", rendered_metrics, HEALTH) as url:
        with pytest.raises(ConfigError, match="cannot serve on "):
            async with serving(url.rpartition("/")[2], rendered_metrics, HEALTH):
                pass


@pytest.mark.parametrize(
    ("metrics", "health", "found"),
    [
        pytest.param(Metrics(), None, (200, 404, 404), id="metrics alone"),
        pytest.param(None, HEALTH, (404, 200, 500), id="health alone"),
    ],
)
async def test_metrics_and_health_can_be_served_separately(
    metrics: Metrics | None, health: Health | None, found: tuple[int, int, int]
) -> None:
    render = partial(exposition, metrics.registry) if metrics else None
    async with (
        serving("127.0.0.1:0", render, health) as url,
        aiohttp.ClientSession(url) as session,
    ):
        answers = [await session.get(path) for path in ("/metrics", "/healthz", "/readyz")]
    assert tuple(answer.status for answer in answers) == found
