"""An informer under test, against a scripted server, with its own clock and pauses."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.informers.scripted import ScriptedServer, scripted

# Otherwise looptime creates a loop for tests that have none, and never closes it.
asyncio.set_event_loop(None)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as server:
        yield server
