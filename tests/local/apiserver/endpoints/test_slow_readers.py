"""Clients that request much, and read it slowly or not at all."""

import asyncio
import socket
import tracemalloc
from contextlib import ExitStack
from urllib.parse import urlencode, urlsplit

import pytest

from tests.local.apiserver.raw_client import CONFIG_MAPS, RawClient, config_map

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


@pytest.mark.parametrize("accept", ["application/json", _PARTIAL, _TABLE])
async def test_long_list_is_that_of_short_pages(api: RawClient, accept: str) -> None:
    await make(api)
    whole = (await api.get(CONFIG_MAPS, accept=accept)).body
    name = "rows" if "rows" in whole else "items"
    pages = [(await api.get(CONFIG_MAPS, accept=accept, limit=1)).body]
    while token := pages[-1]["metadata"].pop("continue", ""):
        params = {"limit": 1, "continue": token}
        pages.append((await api.get(CONFIG_MAPS, accept=accept, **params)).body)
    paged = [entry for page in pages for entry in page.pop(name)]
    assert (len(paged), whole.pop(name)) == (_COUNT, paged)
    assert whole == pages[-1]
