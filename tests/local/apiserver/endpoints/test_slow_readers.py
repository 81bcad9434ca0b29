"""Clients that request much, and read it slowly or not at all."""

import asyncio
import json
import socket
import ssl
import tracemalloc
from contextlib import ExitStack
from urllib.parse import urlencode, urlsplit

import aiohttp
import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.server import serve
from tests.local.apiserver.raw_client import CONFIG_MAPS, RawClient, config_map, until

_COUNT = 100
_OBJECT_BYTES = 100_000
_CLIENTS = 20
_OK = b"HTTP/1.1 200"
_PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


async def make(api: RawClient) -> None:
    for number in range(_COUNT):
        large = {"large": "x" * _OBJECT_BYTES}
        await api.create(CONFIG_MAPS, config_map(f"map-{number:03}", annotations=large))


async def begin(api: RawClient, client: socket.socket, accept: str, **params: str) -> None:
    """Request objects and read no more than the status line of the response."""
    address, loop = urlsplit(api.server.url), asyncio.get_running_loop()
    client.setblocking(False)
    await loop.sock_connect(client, (address.hostname, address.port))
    lines = [
        f"GET {CONFIG_MAPS}?{urlencode(params)} HTTP/1.1",
        "Host: test",
        f"Authorization: Bearer {api.server.token}",
        f"Accept: {accept}",
    ]
    await loop.sock_sendall(client, "\r\n".join([*lines, "", ""]).encode())
    assert await loop.sock_recv(client, len(_OK)) == _OK


@pytest.mark.parametrize(
    ("accept", "params"),
    [
        pytest.param("application/json", {}, id="list"),
        pytest.param(_PARTIAL, {}, id="metadata"),
        pytest.param(_TABLE, {}, id="table"),
        pytest.param("application/json", {"watch": "1"}, id="watch"),
    ],
)
async def test_clients_that_do_not_read_take_little_memory(
    api: RawClient, accept: str, params: dict[str, str]
) -> None:
    await make(api)
    tracemalloc.start()
    with ExitStack() as stack:
        try:
            for _ in range(_CLIENTS):
                await begin(api, stack.enter_context(socket.socket()), accept, **params)
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # A tenth of what they have requested.
    assert held_bytes < _CLIENTS * _COUNT * _OBJECT_BYTES / 10


async def test_slow_watch_begins_with_the_objects_of_one_version(api: RawClient) -> None:
    await make(api)
    begun = api.server.storage.revision
    options = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    async with api.watch(CONFIG_MAPS, **options) as events:
        await events.next()
        for number in range(_COUNT):
            await api.delete(f"{CONFIG_MAPS}/map-{number:03}")
        shown = [await events.next() for _ in range(_COUNT)]
        assert [type_ for type_, _ in shown] == [*["ADDED"] * (_COUNT - 1), "BOOKMARK"]
        assert shown[-1][1]["metadata"]["resourceVersion"] == str(begun)
        assert [type_ for type_, _ in [await events.next() for _ in range(_COUNT)]] == [
            "DELETED"
        ] * _COUNT


def without_age(entry: JSON) -> JSON:
    # In a table the last cell, which changes between the requests.
    return entry | {"cells": entry.get("cells", [])[:-1]}


@pytest.mark.parametrize("accept", ["application/json", _PARTIAL, _TABLE])
async def test_long_list_is_that_of_short_pages(api: RawClient, accept: str) -> None:
    await make(api)
    whole = (await api.get(CONFIG_MAPS, accept=accept)).body
    name = "rows" if "rows" in whole else "items"
    pages = [(await api.get(CONFIG_MAPS, accept=accept, limit=1)).body]
    while token := pages[-1]["metadata"].pop("continue", ""):
        params = {"limit": 1, "continue": token}
        pages.append((await api.get(CONFIG_MAPS, accept=accept, **params)).body)
    paged = [without_age(entry) for page in pages for entry in page.pop(name)]
    assert (len(paged), [without_age(entry) for entry in whole.pop(name)]) == (_COUNT, paged)
    assert whole == pages[-1]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_long_list_is_framed_as_method_and_version_require(
    api: RawClient, method: str, version: str
) -> None:
    await make(api)
    address = urlsplit(api.server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    token = f"Authorization: Bearer {api.server.token}"
    lines = [f"{method} {CONFIG_MAPS} HTTP/{version}", "Host: test", token, "Connection: close"]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    assert head.split()[1] == b"200"
    assert (b"Transfer-Encoding: chunked" in head) == ((method, version) == ("GET", "1.1"))
    if method == "HEAD":
        assert body == b""
    elif version == "1.0":
        assert len(json.loads(body)["items"]) == _COUNT


@pytest.mark.parametrize("query", ["", "?watch=1"], ids=["list", "watch"])
async def test_nothing_is_sent_to_a_client_that_has_disconnected(
    caplog: pytest.LogCaptureFixture, query: str
) -> None:
    async with serve() as server:
        context = ssl.create_default_context(cadata=(server.ca_pem or b"").decode())
        headers = {"Authorization": f"Bearer {server.token}"}
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(
            server.url, headers=headers, connector=connector
        ) as session:
            api = RawClient(session, server)
            await make(api)
            address = urlsplit(server.url)
            _, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context)
            token = f"Authorization: Bearer {server.token}"
            lines = [f"GET {CONFIG_MAPS}{query} HTTP/1.1", "Host: test", token, "", ""]
            writer.write("\r\n".join(lines).encode())
            writer.transport.abort()
            await api.get(CONFIG_MAPS)
            await until(lambda: not server.storage.watchers)
    # asyncio warns of the fifth write to a closed connection, and of each that follows.
    assert caplog.messages == []
