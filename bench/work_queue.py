"""The work queue beside ``asyncio.Queue``: time of a cycle, and memory of a waiting key.

Ratios from one process, because times on a shared machine mean little by themselves: the
contestants take turns, and the best turn of each counts.
"""

import asyncio
import functools
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from dlctl.api.meta import ObjectKey
from dlctl.controller.queue_metrics import QueueMetrics
from dlctl.metrics import Metrics
from dlctl.workqueue.queue import WorkQueue

K = TypeVar("K")

ROUNDS: Final = 15
CYCLES: Final = 20_000
WAITING: Final = 50_000
GOAL_RATIO: Final = 1.5
GOAL_BYTES: Final = 300

STRINGS: Final = [f"default/job-{number}" for number in range(1000)]
OBJECT_KEYS: Final = [ObjectKey("default", f"job-{number}") for number in range(1000)]


async def asyncio_queue() -> None:
    queue = asyncio.Queue[str]()
    for number in range(CYCLES):
        await queue.put(STRINGS[number % 1000])
        await queue.get()
        queue.task_done()


async def work_queue(make: Callable[[], WorkQueue[K]], keys: Sequence[K]) -> None:
    queue = make()
    for number in range(CYCLES):
        key = keys[number % 1000]
        queue.add(key)
        await queue.get()
        queue.done(key)


def with_metrics() -> WorkQueue[str]:
    return WorkQueue(metrics=QueueMetrics(Metrics(), "bench"))


CONTESTANTS: Final[dict[str, Callable[[], Awaitable[None]]]] = {
    "asyncio.Queue put + get + task_done": asyncio_queue,
    "WorkQueue add + get + done": functools.partial(work_queue, WorkQueue[str], STRINGS),
    "  with metrics": functools.partial(work_queue, with_metrics, STRINGS),
    "  with ObjectKey for a key": functools.partial(work_queue, WorkQueue[ObjectKey], OBJECT_KEYS),
}


async def cycle_times_s() -> dict[str, float]:
    """Return the best time of one cycle by contestant."""
    best = dict.fromkeys(CONTESTANTS, float("inf"))
    for _ in range(ROUNDS):
        for name, run in CONTESTANTS.items():
            started = time.perf_counter()
            await run()
            best[name] = min(best[name], (time.perf_counter() - started) / CYCLES)
    return best


async def bytes_per_key(add: Callable[[WorkQueue[str], str], None]) -> float:
    """Return the memory that the queue takes for a waiting key, the key itself left out."""
    keys = [f"default/job-{number}" for number in range(WAITING)]
    queue = WorkQueue[str]()
    tracemalloc.start()
    for key in keys:
        add(queue, key)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    queue.shut_down()
    return used / WAITING


async def main() -> None:
    times = await cycle_times_s()
    reference_s = times["asyncio.Queue put + get + task_done"]
    print(f"{'cycle':<40}{'us':>8}{'ratio':>8}   goal")
    for number, (name, seconds) in enumerate(times.items()):
        goal = f"<= {GOAL_RATIO}" if number == 1 else ""
        print(f"{name:<40}{seconds * 1e6:>8.2f}{seconds / reference_s:>8.2f}   {goal}".rstrip())
    print(f"\n{'memory':<40}{'B/key':>8}{'':>8}   goal")
    ready = await bytes_per_key(lambda queue, key: queue.add(key))
    delayed = await bytes_per_key(lambda queue, key: queue.add_after(key, 3600))
    for name, size_bytes in (("ready key", ready), ("delayed key", delayed)):
        print(f"{name:<40}{size_bytes:>8.0f}{'':>8}   <= {GOAL_BYTES}")


if __name__ == "__main__":
    asyncio.run(main())
