import asyncio
import gc
import time

import pytest

from dlctl.metrics import Metrics
from dlctl.pauses import observe_gc_pauses, observe_loop_lag


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.mark.looptime
async def test_punctual_loop_has_no_lag(metrics: Metrics) -> None:
    await _watch_loop_for(metrics, 10)

    assert metrics.registry.get_sample_value("dlctl_event_loop_lag_seconds_sum") == 0
    assert _lags(metrics) == 20


async def test_blocked_loop_shows_as_lag(metrics: Metrics) -> None:
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(
            observe_loop_lag(metrics.dlctl_event_loop_lag_seconds, period_s=0.001)
        )
        await asyncio.sleep(0)
        busy_until = time.monotonic() + 0.03
        while time.monotonic() < busy_until:
            pass
        await asyncio.sleep(0.002)
        watching.cancel()

    lag_s = metrics.registry.get_sample_value("dlctl_event_loop_lag_seconds_sum")
    assert lag_s is not None
    assert lag_s > 0.02


def test_garbage_collections_are_timed_within_the_block_only(metrics: Metrics) -> None:
    with observe_gc_pauses(metrics.dlctl_gc_pause_seconds):
        gc.collect()
    counted = _collections(metrics)
    gc.collect()

    assert counted == _collections(metrics) == 1


async def _watch_loop_for(metrics: Metrics, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds + 0.1):
            await observe_loop_lag(metrics.dlctl_event_loop_lag_seconds)


def _lags(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("dlctl_event_loop_lag_seconds_count")


def _collections(metrics: Metrics) -> float | None:
    labels = {"generation": "2"}
    return metrics.registry.get_sample_value("dlctl_gc_pause_seconds_count", labels)
