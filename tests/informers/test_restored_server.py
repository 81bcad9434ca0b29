"""An API server whose etcd was restored from a backup: its resource versions go backwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yarl import URL

from dlctl.api.meta import CONFIG_MAPS, Object
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import ApiServer, serve
from tests.informers.watching import CountedBackoff, until
from tests.support.timing import ManualClock

TOKEN = "secret-token"


async def test_store_shows_the_backup_even_if_its_version_is_overtaken_at_once() -> None:
    async with _restored() as (informer, _, server):
        await until(lambda: _names(informer) == ["new-0"])
        await _create(server, "newer", 9)
        await until(lambda: len(informer.store) == 10)


async def test_long_outage_does_not_delay_the_list_after_it() -> None:
    async with _restored() as (informer, backoff, _):
        await until(lambda: _names(informer) == ["new-0"])
        assert max(backoff.lengths_s) > backoff.backoff.base_s
        assert backoff.lengths_s[-1] == backoff.backoff.base_s


@asynccontextmanager
async def _restored() -> AsyncIterator[tuple[Informer[Object], CountedBackoff, ApiServer]]:
    """Run an informer while a server goes down, and another comes up with older objects."""
    async with asyncio.TaskGroup() as group:
        async with serve(tls=False, token=TOKEN) as server:
            await _create(server, "old", 5)
            port = URL(server.url).port or 0
            client = await Client(server.config()).__aenter__()
            clock = ManualClock()
            backoff = CountedBackoff(clock, random=lambda: 0.0)
            informer = Informer(client, CONFIG_MAPS, Object, clock=clock, backoff=backoff)
            running = group.create_task(informer.run())
            await until(lambda: len(informer.store) == 5)
        await until(lambda: len(backoff.pauses) > 5)
        async with serve(tls=False, token=TOKEN, port=port) as server:
            await _create(server, "new", 1)
            yield informer, backoff, server
            running.cancel()
            await client.__aexit__()


async def _create(server: ApiServer, prefix: str, count: int) -> None:
    async with Client(server.config()) as client:
        for number in range(count):
            body = {"metadata": {"name": f"{prefix}-{number}"}}
            await client.create(CONFIG_MAPS, "default", body)


def _names(informer: Informer[Object]) -> list[str]:
    return sorted(one.metadata.name for one in informer.store)
