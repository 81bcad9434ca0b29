"""Watch events per second, from the socket to the handlers, beside ``json.loads`` per line.

The server is a process of its own. Contestants take turns, and the best turn of each counts. Times
are those of the client's process alone, so that what others do on the machine does not show.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from bench.pods import make_pod
from bench.servers import serving_lines
from bench.tables import Figure, show
from dlctl.api.meta import PODS
from dlctl.api.objects.pods import Pod
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig

EVENTS: Final = 10_000
PODS_SEEN: Final = 2_000
ROUNDS: Final = 5
GOAL_RATIO: Final = 1.0


def write_events(path: Path) -> None:
    with path.open("wb") as file:
        for number in range(EVENTS):
            pod = make_pod(number % PODS_SEEN, version=number + 10)
            type_ = "ADDED" if number < PODS_SEEN else "MODIFIED"
            file.write(msgspec.json.encode({"type": type_, "object": pod}) + b"\n")


async def by_lines(url: str, take: Callable[[bytes], object]) -> float:
    """Return the CPU seconds to read all events off a watch, doing one thing to each line."""
    async with Client(ClusterConfig.with_token(url, "")) as client, client.watch(PODS) as lines:
        started = time.thread_time()
        for _ in range(EVENTS):
            take(await anext(lines))
        return time.thread_time() - started


async def by_json(url: str) -> float:
    return await by_lines(url, json.loads)


async def by_bytes(url: str) -> float:
    return await by_lines(url, len)


async def by_informer(url: str) -> float:
    """Return the CPU seconds until an informer's handler has been told of all events."""
    seen = 0
    done = asyncio.Event()

    def see(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == EVENTS:
            done.set()

    async with Client(ClusterConfig.with_token(url, "")) as client:
        informer = Informer(client, PODS, Pod)
        informer.add_handler(see)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            await informer.wait_synced()
            started = time.thread_time()
            await done.wait()
            elapsed = time.thread_time() - started
            running.cancel()
    assert len(informer.store) == PODS_SEEN
    return elapsed


READERS: Final[dict[str, Callable[[str], Awaitable[float]]]] = {
    "lines alone": by_bytes,
    "lines + json.loads": by_json,
    "informer: decode, store, index, notify": by_informer,
}


async def best_times_s(url: str) -> dict[str, float]:
    best = dict.fromkeys(READERS, float("inf"))
    for _ in range(ROUNDS):
        for name, run in READERS.items():
            best[name] = min(best[name], await run(url))
    return best


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "events"
        write_events(path)
        size = path.stat().st_size / EVENTS
        with serving_lines(path) as url:
            best = asyncio.run(best_times_s(url))
    lines, plain, informer = best.values()
    ratio = plain / informer
    figures = [Figure(name, f"{EVENTS / seconds:,.0f} /s") for name, seconds in best.items()]
    figures += [
        Figure("  times json.loads", f"{ratio:.2f}", f">= {GOAL_RATIO}", ratio >= GOAL_RATIO),
        Figure("  per event beside reading", f"{(informer - lines) / EVENTS * 1e6:.1f} us"),
    ]
    return 0 if show(f"watch of {EVENTS} events, {size / 1000:.1f} kB each", figures) else 1


if __name__ == "__main__":
    sys.exit(main())
