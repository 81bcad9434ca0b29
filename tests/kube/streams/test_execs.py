"""Commands in containers, against a server with scripted responses."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec
import pytest
from aiohttp import web

from dlctl.api.meta import ObjectKey
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.kube.credentials import Access
from dlctl.kube.errors import (
    ApiError,
    ConnectRefusedError,
    DeadlineExceededError,
    DisconnectedError,
    ForbiddenError,
    NotFoundError,
    OutputLimitError,
    UnauthorizedError,
    UnexpectedResponseError,
    WriteFencedError,
)
from dlctl.kube.streams.execs import ExecResult, OutputLimit
from dlctl.metrics import Metrics
from tests.kube.scripted_server import TOKEN, Handler, Server, fails, garbles, replies, resets

POD = ObjectKey("ns", "launcher")
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
SUCCESS = b'\x03{"status":"Success"}'


def failure(code: int | str, reason: str = "NonZeroExitCode") -> bytes:
    cause = {"reason": "ExitCode", "message": str(code)}
    status = {"status": "Failure", "reason": reason, "details": {"causes": [cause]}}
    return b"\x03" + msgspec.json.encode(status)


def sends(*messages: bytes, protocol: str = V5, then: Handler | None = None) -> Handler:
    """Send these messages, then close the connection."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=[protocol])
        await socket.prepare(request)
        for message in messages:
            await socket.send_bytes(message)
        if then:
            await then(request)
        await socket.close()
        return socket

    return handler


async def silence(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(1000)
    return web.Response()


async def fakes_handshake(request: web.Request) -> web.StreamResponse:
    """Respond as a WebSocket server would, except for the challenge."""
    assert request.transport is not None
    request.transport.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    )
    return await silence(request)


async def run(client: Client, *command: str, **options: object) -> ExecResult:
    return await client.execute(POD, "main", command or ["true"], **options)  # type: ignore[arg-type]


async def test_request_has_container_command_and_streams(client: Client, server: Server) -> None:
    asked: list[tuple[str, Sequence[str]]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append((request.query["container"], request.query.getall("command")))
        assert "stdin" not in request.query
        assert request.query["stdout"] == request.query["stderr"] == "true"
        return await sends(SUCCESS)(request)

    server.handlers.append(handler)
    words = ["sh", "-c", "a; b && c > d\n'\"%41+é", ""]
    assert await run(client, *words) == ExecResult(0)
    assert asked == [("main", words)]
    [seen] = server.seen
    assert seen.path == "/api/v1/namespaces/ns/pods/launcher/exec"
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    assert seen.headers["user-agent"] == "dlctl/test"


@pytest.mark.parametrize("protocol", [V4, V5])
async def test_stdout_and_stderr_are_separate_and_the_exit_code_is_returned(
    client: Client, server: Server, protocol: str
) -> None:
    messages = [b"\x01", b"\x02", b"\x01out", b"\x02err", b"\x01put", b"\x09new", failure(7)]
    server.handlers.append(sends(*messages, protocol=protocol))
    assert await run(client) == ExecResult(7, b"output", b"err")


async def test_status_can_arrive_in_pieces(client: Client, server: Server) -> None:
    server.handlers.append(sends(SUCCESS[:9], b"\x01late", b"\x03" + SUCCESS[9:]))
    assert await run(client) == ExecResult(0, b"late")


async def test_result_does_not_wait_for_the_server_to_close(client: Client, server: Server) -> None:
    server.handlers.append(sends(SUCCESS, then=silence))
    assert await run(client) == ExecResult(0)


def floods(sent: list[int]) -> Handler:
    """Send endless output, as fast as it is read."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=[V5])
        await socket.prepare(request)
        with suppress(ConnectionError):
            while True:
                await socket.send_bytes(b"\x01" + b"x" * 32768)
                sent.append(32768)
        return socket

    return handler


async def test_command_that_exceeds_the_output_limit_is_disconnected(
    client: Client, server: Server
) -> None:
    sent: list[int] = []
    server.handlers.append(floods(sent))
    with pytest.raises(OutputLimitError, match="more than 65536 bytes"):
        await run(client)
    # The rest is in the buffers of the two sockets.
    assert sum(sent) < 8 << 20


@pytest.mark.slow
async def test_output_beyond_the_limit_is_released_at_once(client: Client, server: Server) -> None:
    whole = 4 << 20
    with no_collection():
        tracemalloc.start()
        for _ in range(4):
            server.handlers.append(floods([]))
            with pytest.raises(OutputLimitError):
                await run(client, output_limit=OutputLimit(whole))
        kept, _ = tracemalloc.get_traced_memory()
    assert kept < whole


@contextmanager
def no_collection() -> Iterator[None]:
    """Defer the collection of reference cycles, as in a busy program."""
    gc.disable()
    try:
        yield
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_tail_of_longer_output_is_kept_on_request(client: Client, server: Server) -> None:
    server.handlers.append(sends(*[b"\x01" + b"%060d" % n for n in range(60)], SUCCESS))
    completed = await run(client, output_limit=OutputLimit(100, keep_end=True))
    assert completed == ExecResult(0, (b"%060d" % 58)[-40:] + b"%060d" % 59, is_truncated=True)


async def test_endless_output_is_read_at_a_limited_rate(client: Client, server: Server) -> None:
    sent: list[int] = []
    server.handlers.append(floods(sent))
    with pytest.raises(DeadlineExceededError):
        await run(client, output_limit=OutputLimit(keep_end=True), timeout_s=1)
    assert sum(sent) < 16 << 20


@pytest.mark.parametrize(("protocol", "closed"), [(V4, False), (V5, True)])
async def test_input_is_sent_in_pieces_and_closed_if_the_protocol_can(
    client: Client, server: Server, protocol: str, closed: bool
) -> None:
    heard = bytearray()
    closes: list[bytes] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.query["stdin"] == "true"
        socket = web.WebSocketResponse(protocols=[protocol])
        await socket.prepare(request)
        while len(heard) < 100_000 or (closed and not closes):
            data = await socket.receive_bytes()
            if data[:1] == b"\0":
                heard.extend(data[1:])
            else:
                closes.append(data)
        await socket.send_bytes(SUCCESS)
        return socket

    server.handlers.append(handler)
    completed = await client.execute(POD, "main", ["cat"], stdin=b"x" * 100_000, timeout_s=5)
    assert completed == ExecResult(0)
    assert heard == b"x" * 100_000
    assert closes == [b"\xff\0"] * closed


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        pytest.param(404, "NotFound", NotFoundError, id="the pod is gone"),
        pytest.param(403, "Forbidden", ForbiddenError, id="forbidden"),
        pytest.param(500, "InternalError", ApiError, id="no kubelet"),
        pytest.param(401, "Unauthorized", UnauthorizedError, id="no credentials"),
    ],
)
async def test_rejection_has_the_servers_message(
    client: Client, server: Server, code: int, reason: str, error: type[ApiError]
) -> None:
    server.handlers.append(fails(code, reason, "because"))
    with pytest.raises(error, match="because"):
        await run(client)


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(replies({}), id="an ordinary response"),
        pytest.param(sends(protocol="chat"), id="other protocols"),
        pytest.param(fakes_handshake, id="a wrong response to the challenge"),
    ],
)
async def test_server_without_the_exec_protocol_raises(
    client: Client, server: Server, handler: Handler
) -> None:
    server.handlers.append(handler)
    with pytest.raises(UnexpectedResponseError) as caught:
        await run(client, "secret")
    assert "secret" not in str(caught.value)


async def test_redirect_is_not_followed(client: Client, server: Server) -> None:
    server.handlers.append(replies({}, 307, Location=f"{server.url}/elsewhere"))
    with pytest.raises(ApiError):
        await run(client)
    assert len(server.seen) == 1


async def test_command_that_could_not_be_started_raises(client: Client, server: Server) -> None:
    body = {"status": "Failure", "code": 500, "reason": "InternalError", "message": "no such file"}
    server.handlers.append(sends(b"\x03" + msgspec.json.encode(body)))
    with pytest.raises(ApiError, match="no such file"):
        await run(client)


@pytest.mark.parametrize("then", [None, resets, garbles], ids=["closed", "reset", "garbled"])
@pytest.mark.parametrize("said", [[], [b"\x01out"], [SUCCESS[:-3]]], ids=["", "output", "a part"])
async def test_connection_closed_without_a_status_raises(
    client: Client, server: Server, said: list[bytes], then: Handler | None
) -> None:
    server.handlers.append(sends(*said, then=then))
    with pytest.raises(DisconnectedError):
        await run(client)


@pytest.mark.parametrize(
    "handler", [sends(b"\x01out", then=silence), silence], ids=["command", "server"]
)
async def test_timeout_covers_the_connection_and_the_command(
    client: Client, server: Server, handler: Handler
) -> None:
    server.handlers.append(handler)
    with pytest.raises(DeadlineExceededError, match=r"in ns/launcher did not end within 0\.1 s"):
        await run(client, timeout_s=0.1)


async def test_cancelling_closes_the_connection_at_once(client: Client, server: Server) -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=[V5])
        await socket.prepare(request)
        begun.set()
        try:
            await silence(request)
        finally:
            closed.set()
        return socket

    server.handlers.append(handler)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run(client))
        await begun.wait()
        task.cancel()
        await closed.wait()
    assert task.cancelled()


async def test_unread_input_delays_neither_the_timeout_nor_the_end(
    client: Client, server: Server
) -> None:
    over = asyncio.Event()

    async def deaf(request: web.Request) -> web.StreamResponse:
        await over.wait()
        return await resets(request)

    server.handlers.append(sends(then=deaf))
    with pytest.raises(DeadlineExceededError):
        await client.execute(POD, "main", ["true"], stdin=b"x" * (8 << 20), timeout_s=0.2)
    over.set()


async def test_command_is_sent_only_while_writes_are_allowed(server: Server) -> None:
    server.handlers.append(sends(SUCCESS))
    answers = [True]
    config = ClusterConfig.with_token(server.url, TOKEN)
    async with Client(config, may_write=lambda: answers[-1]) as client:
        assert await run(client) == ExecResult(0)
        answers.append(False)
        with pytest.raises(WriteFencedError):
            await run(client)
    assert len(server.seen) == 1


async def test_rejected_credentials_are_renewed_once(server: Server) -> None:
    class Renewed:
        async def access(self, rejected: Access | None = None) -> Access:
            return Access({"Authorization": "Bearer new" if rejected else "Bearer old"})

    server.handlers += [fails(401, "Unauthorized"), sends(SUCCESS)]
    async with Client(ClusterConfig(server.url, Renewed())) as client:
        assert await run(client) == ExecResult(0)
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]


async def test_exec_without_a_server_raises_connect_refused(client: Client) -> None:
    async with Client(ClusterConfig("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectRefusedError):
            await run(client)


async def test_commands_are_counted_as_requests(
    client: Client, server: Server, metrics: Metrics
) -> None:
    server.handlers += [sends(SUCCESS), fails(404, "NotFound")]
    await run(client)
    with pytest.raises(NotFoundError):
        await run(client)
    for code in ("101", "404"):
        labels = {"code": code, "method": "GET", "host": server.url.removeprefix("http://")}
        assert metrics.registry.get_sample_value("rest_client_requests_total", labels) == 1
