import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from dlctl.local.apiserver.server import ApiServer, serve
from tests.local.apiserver.raw_client import CRDS, RawClient, widget_crd


@pytest.fixture(scope="session", autouse=True)
def no_loop_of_the_thread() -> None:
    # Otherwise looptime creates one for each synchronous test, and never closes it.
    asyncio.set_event_loop(None)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serve(tls=False, bookmark_interval_s=0.05) as running:
        yield running


@pytest.fixture
async def api(server: ApiServer) -> AsyncIterator[RawClient]:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession(server.url, headers=headers) as session:
        yield RawClient(session, server)


@pytest.fixture
async def widgets(api: RawClient) -> RawClient:
    """A server with a custom resource that has a status subresource."""
    await api.create(CRDS, widget_crd())
    return api
