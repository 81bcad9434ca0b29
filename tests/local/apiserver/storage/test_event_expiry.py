"""When the server removes events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, EVENTS, ObjectKey
from dlctl.local.apiserver import status
from dlctl.local.apiserver.storage.event_expiry import EVENT_TTL_S, EventExpiry
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import StorageEvent
from tests.support.timing import LoopClock

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "e")
EVENT: JSON = {"metadata": {"name": "e", "namespace": "default", "uid": "u"}}


@asynccontextmanager
async def expiring() -> AsyncIterator[Storage]:
    storage = Storage()
    expiry = EventExpiry(storage, LoopClock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(expiry.run())
        yield storage
        task.cancel()


async def test_event_is_removed_after_an_hour() -> None:
    async with expiring() as storage:
        storage.create(EVENTS, EVENT)
        await asyncio.sleep(EVENT_TTL_S - 1)
        assert storage.get(EVENTS, KEY)
        await asyncio.sleep(120)
        assert storage.get(EVENTS, KEY) is None


async def test_event_that_is_written_again_is_kept() -> None:
    async with expiring() as storage:
        stored = storage.create(EVENTS, EVENT)
        await asyncio.sleep(EVENT_TTL_S - 1)
        storage.update(EVENTS, stored, EVENT | {"count": 2})
        await asyncio.sleep(EVENT_TTL_S - 120)
        assert storage.get(EVENTS, KEY)


async def test_removal_that_fails_is_tried_again() -> None:
    def fail(_: StorageEvent) -> None:
        raise status.internal_error("journal: No space left on device")

    async with expiring() as storage:
        storage.create(EVENTS, EVENT)
        persist, storage.persist = storage.persist, fail
        await asyncio.sleep(EVENT_TTL_S + 120)
        assert storage.get(EVENTS, KEY)
        storage.persist = persist
        await asyncio.sleep(120)
        assert storage.get(EVENTS, KEY) is None


async def test_other_objects_are_kept() -> None:
    async with expiring() as storage:
        storage.create(CONFIG_MAPS, EVENT)
        await asyncio.sleep(2 * EVENT_TTL_S)
        assert storage.get(CONFIG_MAPS, KEY)
