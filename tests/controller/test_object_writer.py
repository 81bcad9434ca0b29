"""Writes to a real server, and what the stores are expected to show of them."""

from collections.abc import AsyncIterator

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, UID, Object
from dlctl.controller.expectations import Expectations
from dlctl.controller.object_writer import ObjectWriter
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import serve
from tests.support.timing import ManualClock

TOKEN, OWNER = "secret-token", UID("uid-of-job")


@pytest.fixture
async def writer() -> AsyncIterator[ObjectWriter]:
    async with serve(tls=False, token=TOKEN) as server, Client(server.config()) as client:
        yield ObjectWriter(client, Expectations(ManualClock()))


async def create(writer: ObjectWriter, **metadata: object) -> Object:
    body: JSON = {"metadata": {"name": "a", **metadata}}
    return await writer.client.create(CONFIG_MAPS, "default", body)


def is_shown(writer: ObjectWriter, version: str) -> bool:
    store = Store[Object]()
    store.resource_version = version
    return writer.expectations.satisfied("default", OWNER, {CONFIG_MAPS: store})


async def test_object_that_finalizers_keep_is_expected_to_be_shown_without_grace(
    writer: ObjectWriter,
) -> None:
    kept = await create(writer, finalizers=["example.com/keep"])
    assert await writer.force_delete(OWNER, CONFIG_MAPS, kept)
    assert not is_shown(writer, kept.metadata.resource_version)
    assert is_shown(writer, str(int(kept.metadata.resource_version) + 1))


async def test_nothing_is_expected_of_an_object_that_was_gone(writer: ObjectWriter) -> None:
    gone = await create(writer)
    await writer.delete(UID("uid-of-another"), CONFIG_MAPS, gone)
    assert not await writer.force_delete(OWNER, CONFIG_MAPS, gone)
    assert is_shown(writer, gone.metadata.resource_version)
