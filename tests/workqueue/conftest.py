import pytest

from dlctl.workqueue.queue import WorkQueue


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue()
