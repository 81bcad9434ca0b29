"""A controller of string keys, without a back-off of more than 100 s."""

import pytest

from dlctl.backoff import Backoff
from dlctl.controller.controller import Controller
from dlctl.metrics import Metrics
from dlctl.workqueue.item_backoff import ItemBackoff
from dlctl.workqueue.queue import WorkQueue
from tests.controller.scripted import NAME, Make


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue(backoff=ItemBackoff(Backoff(base_s=1, cap_s=100)))


@pytest.fixture
def make(queue: WorkQueue[str], metrics: Metrics) -> Make:
    return lambda reconcile: Controller(NAME, queue, reconcile, metrics)
