import asyncio

import pytest

from dlctl.workqueue.queue import WorkQueue

# Otherwise the first test makes asyncio invent a current loop, which nobody closes.
asyncio.set_event_loop(None)


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue()
