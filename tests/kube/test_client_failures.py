"""Requests that fail: what is retried, and which error callers get."""

import asyncio
from functools import partial

import pytest
from aiohttp import web

from dlctl.api.meta import PODS, Object, ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.kube.errors import (
    ApiError,
    ConnectRefusedError,
    ThrottledError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnreachableError,
)
from dlctl.metrics import Metrics
from tests.kube.scripted_server import TOKEN, Server, fails, replies, resets

KEY = ObjectKey("ns", "a")
POD = {"kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}
THROTTLED = fails(429, "TooManyRequests", Retry_After="0")


async def test_throttled_request_is_retried_until_accepted(
    server: Server, client: Client, metrics: Metrics
) -> None:
    server.handlers += [THROTTLED, fails(503, "", Retry_After="0"), THROTTLED, replies(POD)]
    await client.create(PODS, "ns", {})
    assert len(server.seen) == 4
    labels = {"code": "429", "verb": "POST", "host": server.url.removeprefix("http://")}
    retried = metrics.registry.get_sample_value("rest_client_request_retries_total", labels)
    assert retried == 2


async def test_write_that_was_shed_is_retried_once_the_server_takes_another(
    server: Server, client: Client, metrics: Metrics
) -> None:
    shed = replies(b"Too many requests, please try again later.", 429, Retry_After="32")
    server.handlers += [shed, replies(POD)]
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(client.create(PODS, "ns", {"metadata": {"name": "first"}}))
        labels = {"code": "429", "verb": "POST", "host": server.url.removeprefix("http://")}
        retries = partial(
            metrics.registry.get_sample_value, "rest_client_request_retries_total", labels
        )
        while not retries():  # noqa: ASYNC110 - nothing else shows that the response was read.
            await asyncio.sleep(0.01)
        await client.create(PODS, "ns", {"metadata": {"name": "second"}})
    sent = [request.body["metadata"]["name"] for request in server.seen]
    assert sent == ["first", "second", "first"]


async def test_throttled_request_is_given_up_after_the_last_retry(
    server: Server, client: Client
) -> None:
    server.handlers += [THROTTLED]
    with pytest.raises(ThrottledError):
        await client.get(PODS, KEY, Pod)
    assert len(server.seen) == 11


async def test_client_without_retries_leaves_them_to_the_caller(server: Server) -> None:
    server.handlers += [THROTTLED]
    config = ClusterConfig.with_token(server.url, TOKEN)
    async with Client(config, max_retries=0) as client:
        with pytest.raises(ThrottledError):
            await client.create(PODS, "ns", {})
    assert len(server.seen) == 1


async def test_long_pause_is_left_to_the_caller(server: Server, client: Client) -> None:
    server.handlers += [fails(429, "TooManyRequests", Retry_After="300")]
    with pytest.raises(ThrottledError) as raised:
        await client.get(PODS, KEY, Pod)
    assert raised.value.retry_after_s == 300
    assert len(server.seen) == 1


async def test_read_is_retried_after_a_broken_connection_and_a_write_is_not(
    server: Server, client: Client
) -> None:
    server.handlers += [resets, replies(POD)]
    assert (await client.get(PODS, KEY, Pod)).key == KEY
    server.handlers.clear()
    server.handlers += [resets]
    with pytest.raises(UnreachableError):
        await client.create(PODS, "ns", {})
    assert [seen.method for seen in server.seen].count("POST") == 1


async def test_server_error_without_retry_after_is_not_retried(
    server: Server, client: Client
) -> None:
    server.handlers += [fails(500, "InternalError", "etcd is down")]
    with pytest.raises(ApiError, match="etcd is down"):
        await client.get(PODS, KEY, Pod)
    assert len(server.seen) == 1


async def test_request_without_a_response_times_out(server: Server) -> None:
    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.handlers += [silent]
    config = ClusterConfig.with_token(server.url, TOKEN)
    async with Client(config, request_timeout_s=0.01) as client:
        with pytest.raises(UnreachableError, match="no response in time"):
            await client.get(PODS, KEY, Pod)


async def test_silent_watch_times_out(server: Server) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        await asyncio.Event().wait()
        return response

    server.handlers += [silent]
    config = ClusterConfig.with_token(server.url, TOKEN)
    async with (
        Client(config, watch_idle_timeout_s=0.2) as client,
        client.watch(PODS) as watch,
    ):
        assert await anext(watch) == b"{}"
        with pytest.raises(UnreachableError, match="no response in time"):
            await anext(watch)


async def test_refused_connection_has_its_own_error(server: Server) -> None:
    async with Client(ClusterConfig.with_token("http://localhost:1", TOKEN)) as client:
        with pytest.raises(ConnectRefusedError, match=r"localhost:1 refuses connections$"):
            await client.get(PODS, KEY, Pod)


async def test_proxy_that_refuses_connections_is_called_one() -> None:
    config = ClusterConfig("http://k8s.example", proxy="http://localhost:1")
    async with Client(config) as client:
        with pytest.raises(
            ConnectRefusedError, match=r"the proxy localhost:1 refuses connections$"
        ):
            await client.get(PODS, KEY, Pod)


async def test_redirect_is_not_followed(server: Server, client: Client) -> None:
    server.handlers += [replies(b"", 302, Location="http://elsewhere.example/")]
    with pytest.raises(ApiError):
        await client.get(PODS, KEY, Pod)
    assert len(server.seen) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"metadata":{"labels":3}}', b"\xff"])
async def test_response_of_another_type_has_its_own_error(
    server: Server, client: Client, body: bytes
) -> None:
    server.handlers += [replies(body)]
    with pytest.raises(UnexpectedResponseError):
        await client.get(PODS, KEY, Pod)


async def test_response_of_a_proxy_is_no_stored_object(server: Server, client: Client) -> None:
    server.handlers += [replies({"error": "unauthorized"})] * 3
    with pytest.raises(UnexpectedResponseError):
        await client.get(PODS, KEY, Pod)
    with pytest.raises(UnexpectedResponseError):
        await client.create(PODS, "ns", POD)
    with pytest.raises(UnexpectedResponseError):
        await client.delete(PODS, KEY)


async def test_no_error_shows_the_token(server: Server, client: Client) -> None:
    server.handlers += [
        fails(404, "NotFound"),
        replies(f"<html>{TOKEN}</html>".encode(), 502),
        fails(401, "Unauthorized"),
        replies(b"{"),
    ]
    for _ in range(3):
        with pytest.raises((ApiError, UnexpectedResponseError)) as raised:
            await client.get(PODS, KEY, Object)
        assert TOKEN not in f"{raised.value!r} {raised.value}"
    assert TOKEN not in repr(ClusterConfig.with_token(server.url, TOKEN))


async def test_rejected_credentials_that_cannot_be_renewed_raise(
    server: Server, client: Client
) -> None:
    server.handlers += [fails(401, "Unauthorized")]
    with pytest.raises(UnauthorizedError):
        await client.get(PODS, KEY, Pod)
    assert len(server.seen) == 1
