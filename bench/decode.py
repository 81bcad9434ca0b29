"""A list of 5,000 pods through the client's own code, beside ``json.loads``.

Each contestant runs in a process of its own, for memory that one has freed is what the next would
use; they take turns, and the best counts. Times are those of the process alone: on a shared machine
the clock on the wall shows the others' work.
"""

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.pods import make_list
from bench.servers import serving_pages
from bench.tables import Figure, show
from dlctl.api.meta import PODS
from dlctl.api.objects.pods import Pod
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.kube.decoding import decode_page
from dlctl.kube.queries import PAGE_SIZE

TOTAL: Final = 5000
ROUNDS: Final = 2
TURNS: Final = 3
GOAL_SPEED: Final = 5.0
GOAL_MEMORY: Final = 0.25
GOAL_STALL_S: Final = 0.050
GOAL_STORED_KB: Final = 1.3


def resident_bytes() -> int:
    """Return what this process holds of memory now, not at its peak."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def write_lists(folder: Path) -> None:
    """Write the whole list, and its pages by their continue tokens."""
    (folder / "all").write_bytes(make_list(range(TOTAL)))
    for start in range(0, TOTAL, PAGE_SIZE):
        end = start + PAGE_SIZE
        following = str(end) if end < TOTAL else ""
        (folder / f"page-{start}").write_bytes(make_list(range(start, end), following))


def bodies(folder: Path, mode: str) -> Iterator[bytes]:
    names = ["all"] if mode == "json" else [f"page-{n}" for n in range(0, TOTAL, PAGE_SIZE)]
    return ((folder / name).read_bytes() for name in names)


async def decode(mode: str, answers: Iterator[bytes]) -> list[Any]:
    if mode == "json":
        return [json.loads(answer) for answer in answers]
    kept: list[Any] = []
    for answer in answers:
        kept += (await decode_page(answer, Pod)).items
        await asyncio.sleep(0)
    return kept


def measure(folder: Path, mode: str) -> dict[str, float]:
    """Return the growth of this process for one list that is kept, and the best time."""
    gc.collect()
    before = resident_bytes()
    kept = asyncio.run(decode(mode, bodies(folder, mode)))
    gc.collect()
    grown = resident_bytes() - before
    del kept
    return {"bytes": grown, "seconds": min(timed(folder, mode) for _ in range(ROUNDS))}


def timed(folder: Path, mode: str) -> float:
    answers = list(bodies(folder, mode))
    gc.collect()
    started = time.thread_time()
    kept = asyncio.run(decode(mode, iter(answers)))
    elapsed = time.thread_time() - started
    del kept
    return elapsed


async def longest_stall_s(url: str) -> float:
    """Sync an informer over HTTP and return how long the loop was away from others at most."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest = max(longest, now - last)
            last = now

    async with Client(ClusterConfig.with_token(url, "")) as client:
        informer = Informer(client, PODS, Pod)
        seen: list[str] = []
        informer.add_handler(lambda change: seen.append(change.key.name))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(tick()), group.create_task(informer.run())]
            await informer.wait_synced()
            for task in tasks:
                task.cancel()
    assert len(seen) == len(informer.store) == TOTAL
    return longest


def pages_of(folder: Path) -> dict[str, Path]:
    """Return the pages of the list by their continue tokens."""
    return {str(n): folder / f"page-{n}" for n in range(0, TOTAL, PAGE_SIZE)}


def stalls(folder: Path) -> dict[str, float]:
    with serving_pages(pages_of(folder)) as paged, serving_pages({"0": folder / "all"}) as whole:
        return {
            "pages": min(asyncio.run(longest_stall_s(paged)) for _ in range(ROUNDS)),
            "whole": min(asyncio.run(longest_stall_s(whole)) for _ in range(ROUNDS)),
        }


async def stored_kb(url: str) -> float:
    """Return what an informer's store keeps of each pod: 1,000 bytes of Python's memory."""
    tracemalloc.start()
    async with Client(ClusterConfig.with_token(url, "")) as client:
        informer = Informer(client, PODS, Pod)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            await informer.wait_synced()
            running.cancel()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / len(informer.store) / 1e3


def stored(folder: Path) -> dict[str, float]:
    with serving_pages(pages_of(folder)) as url:
        return {"kb": asyncio.run(stored_kb(url))}


def in_process(folder: Path, mode: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.decode", mode, str(folder)]
    result: dict[str, float] = json.loads(subprocess.check_output(command))
    return result


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lists(folder)
        size = (folder / "all").stat().st_size / TOTAL
        turns = [(in_process(folder, "json"), in_process(folder, "typed")) for _ in range(TURNS)]
        stall = in_process(folder, "stalls")
        kept_kb = in_process(folder, "stored")["kb"]
    plain, typed = (min(each, key=lambda r: r["seconds"]) for each in zip(*turns, strict=True))
    speed = plain["seconds"] / typed["seconds"]
    memory = typed["bytes"] / plain["bytes"]
    held = show(
        f"list of {TOTAL} pods, {size / 1000:.1f} kB each",
        [
            Figure("json.loads", f"{plain['seconds'] * 1e3:.0f} ms"),
            Figure("pages into projections", f"{typed['seconds'] * 1e3:.0f} ms"),
            Figure("  times faster", f"{speed:.1f}", f">= {GOAL_SPEED}", speed >= GOAL_SPEED),
            Figure("json.loads keeps", f"{plain['bytes'] / 1e6:.0f} MB"),
            Figure("projections keep", f"{typed['bytes'] / 1e6:.0f} MB"),
            Figure("  ratio", f"{memory:.2f}", f"<= {GOAL_MEMORY}", memory <= GOAL_MEMORY),
            Figure(
                "a store keeps of each pod",
                f"{kept_kb:.2f} KB",
                f"<= {GOAL_STORED_KB} KB",
                kept_kb <= GOAL_STORED_KB,
            ),
            _stall("longest stall, in pages", stall["pages"]),
            _stall("  if the server makes none", stall["whole"]),
        ],
    )
    return 0 if held else 1


def _stall(name: str, seconds: float) -> Figure:
    held = seconds < GOAL_STALL_S
    return Figure(name, f"{seconds * 1e3:.0f} ms", f"< {GOAL_STALL_S * 1e3:.0f} ms", held)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    mode, folder = sys.argv[1], Path(sys.argv[2])
    modes = {"stalls": stalls, "stored": stored}
    print(json.dumps(modes[mode](folder) if mode in modes else measure(folder, mode)))
