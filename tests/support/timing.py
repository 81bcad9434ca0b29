"""Clocks for tests: one that a test sets, those of an event loop that compacts time, and turns."""

import asyncio
import datetime
import itertools
from collections.abc import Awaitable
from typing import Any, Final

import attrs

EPOCH: Final = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
_TICK_S: Final = 1e-9


@attrs.frozen
class LoopClock:
    """Both clocks read the running loop, so minutes of back-off pass in no time."""

    # Of the wall clock, which may differ between machines.
    ahead_s: float = 0.0

    def now(self) -> datetime.datetime:
        return EPOCH + datetime.timedelta(seconds=self.monotonic() + self.ahead_s)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@attrs.define
class ManualClock:
    """A clock that only moves when a test sets it."""

    seconds: float = 1000.0

    def now(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.seconds, datetime.UTC)

    def monotonic(self) -> float:
        return self.seconds


def tick_on_read() -> None:
    """Advance the running loop's clock by a tick on every read.

    Compacted time stands still while there is work. A task that wakes up a rounding error early and
    waits for the rest would wait forever at that moment.
    """
    loop = asyncio.get_running_loop()
    compacted, ticks = loop.time, itertools.count(1)
    loop.time = lambda: compacted() + next(ticks) * _TICK_S  # type: ignore[method-assign]


async def turns_during(happens: Awaitable[object]) -> int:
    """Return how often the event loop ran another task meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        counting: asyncio.Task[Any] = group.create_task(count())
        await happens
        counting.cancel()
    return turns
