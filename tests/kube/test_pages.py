"""Lists in pages, whatever the size of their objects."""

import asyncio
import tracemalloc
from typing import Final

import attrs
import pytest
from aiohttp import web

from dlctl.api.meta import PODS, Object
from dlctl.kube.client import MAX_PAGE_BYTES, Client
from dlctl.kube.queries import ListOptions
from tests.kube.scripted_server import Server

_CHUNK: Final = b"x" * (256 << 10)
_LIST: Final = ListOptions(namespace="ns", limit=500)


@attrs.frozen
class _LargePods:
    """Lists pods with as much text each as fits; at version 0, it ignores the limit."""

    count: int
    pod_bytes: int
    page_sizes: list[int] = attrs.field(init=False, factory=list)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        start = int(query.get("continue", 0))
        limit = int(query.get("limit", self.count))
        is_cached = query.get("resourceVersion") == "0"
        end = self.count if is_cached else min(self.count, start + limit)
        self.page_sizes.append(end - start)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        token = f'"continue":"{end}",' if end < self.count else ""
        await response.write(f'{{"metadata":{{{token}"resourceVersion":"7"}},"items":['.encode())
        for number in range(start, end):
            separator = "," if number > start else ""
            await response.write(
                f'{separator}{{"metadata":{{"name":"p{number}"}},"spec":"'.encode()
            )
            for left in range(self.pod_bytes, 0, -len(_CHUNK)):
                await response.write(_CHUNK[:left])
            await response.write(b'"}')
        await response.write(b"]}")
        return response


async def _names(client: Client, options: ListOptions = _LIST) -> list[str]:
    pages = client.pages(PODS, Object, **options)
    return [obj.metadata.name async for page in pages for obj in page.items]


@pytest.mark.parametrize(
    ("options", "count", "mb", "sizes"),
    [
        pytest.param({}, 40, 0.1, [40], id="small objects"),
        pytest.param({}, 40, 1, [40, 40, *[7] * 5, 5], id="as large as a server stores them"),
        pytest.param({}, 5, 9, [5, 5, 5, *[1] * 5], id="with text that JSON escapes"),
        pytest.param(
            {"resource_version": "0"}, 40, 1, [40, 40, 40, *[7] * 5, 5], id="from a cache"
        ),
        pytest.param({"limit": None}, 40, 1, [40, 40, 40, *[7] * 5, 5], id="without a limit"),
    ],
)
async def test_pages_of_large_objects_are_read_in_smaller_ones(
    server: Server,
    client: Client,
    options: ListOptions,
    count: int,
    mb: float,
    sizes: list[int],
) -> None:
    large = _LargePods(count, int(mb * (1 << 20)))
    server.handlers += [large]
    assert await _names(client, {**_LIST, **options}) == [f"p{number}" for number in range(count)]
    assert large.page_sizes == sizes


async def test_large_pages_that_are_due_at_the_same_time_take_the_memory_of_few(
    server: Server, client: Client
) -> None:
    server.handlers += [_LargePods(30, 1 << 20)]
    tracemalloc.start()
    try:
        listed = await asyncio.gather(*(_names(client) for _ in range(6)))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(names) for names in listed] == [30] * 6
    assert peak_bytes < 5 * MAX_PAGE_BYTES
