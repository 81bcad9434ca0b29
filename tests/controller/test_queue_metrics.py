import asyncio

import pytest

from dlctl.controller.queue_metrics import MAX_PRIORITIES, OTHER_PRIORITIES, QueueMetrics
from dlctl.metrics import Metrics
from dlctl.workqueue.queue import WorkQueue

pytestmark = pytest.mark.looptime


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def queue(metrics: Metrics) -> WorkQueue[str]:
    return WorkQueue(metrics=QueueMetrics(metrics, "mxjobs"))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    labels = {"name": "mxjobs", "controller": "mxjobs", **labels}
    return metrics.registry.get_sample_value(f"workqueue_{name}", labels)


async def test_depth_adds_and_retries_are_exported(queue: WorkQueue[str], metrics: Metrics) -> None:
    queue.add("a")
    queue.add("b", priority=-100)
    queue.add_after("c", 5)

    assert value(metrics, "depth", priority="0") == 1
    assert value(metrics, "depth", priority="-100") == 1
    assert value(metrics, "adds_total") == 2
    assert value(metrics, "retries_total") == 1


async def test_queue_and_work_durations_are_observed(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    queue.add("a")
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(3)
    queue.done("a")

    assert value(metrics, "queue_duration_seconds_sum") == pytest.approx(2)
    assert value(metrics, "work_duration_seconds_sum") == pytest.approx(3)
    assert value(metrics, "depth", priority="0") == 0


async def test_unfinished_work_is_computed_on_scrape(
    queue: WorkQueue[str], metrics: Metrics
) -> None:
    assert value(metrics, "unfinished_work_seconds") == 0
    assert value(metrics, "longest_running_processor_seconds") == 0
    for key in "ab":
        queue.add(key)
        await queue.get()
        await asyncio.sleep(4)

    assert value(metrics, "unfinished_work_seconds") == pytest.approx(12)
    assert value(metrics, "longest_running_processor_seconds") == pytest.approx(8)


async def test_excess_priorities_share_a_label(queue: WorkQueue[str], metrics: Metrics) -> None:
    for priority in range(MAX_PRIORITIES + 3):
        queue.add(str(priority), priority=priority)

    assert value(metrics, "depth", priority=str(MAX_PRIORITIES - 1)) == 1
    assert value(metrics, "depth", priority=str(MAX_PRIORITIES)) is None
    assert value(metrics, "depth", priority=OTHER_PRIORITIES) == 3
