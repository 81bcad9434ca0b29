"""Pauses of the whole process: an event loop that is blocked, and garbage collections."""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Histogram


async def observe_loop_lag(lag: Histogram, *, period_s: float = 0.5) -> None:
    """Measure how late the event loop wakes a sleeper, until cancelled: blocking shows here."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + period_s
        await asyncio.sleep(period_s)
        lag.observe(max(0.0, loop.time() - due))


@contextmanager
def observe_gc_pauses(pause: Histogram) -> Iterator[None]:
    """Time garbage collections by generation for the duration of the block."""
    started = 0.0

    def observe(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = time.perf_counter()
        else:
            pause.labels(str(info["generation"])).observe(time.perf_counter() - started)

    gc.callbacks.append(observe)
    try:
        yield
    finally:
        gc.callbacks.remove(observe)
