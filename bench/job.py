"""The controller at work: one job of 1,000 replicas, and 200 jobs of 4.

On the embedded API server with a node that only reports, all in one process and one event loop:
the times are those of all parts together, the numbers of writes are the controller's alone. Run
it as ``python -m bench.job``; it fails if the controller writes more than it should.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from bench.tables import Figure, show
from tests.builders import kind_of, mxjob
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.outcomes import Script, script_of

REPLICAS: Final = 1000
JOBS: Final = 200
STATUS_WRITES: Final = 5
EVENT_WRITES: Final = 20
LIMIT_S: Final = 300.0
_LOOK_S: Final = 0.01
_KINDS: Final = [kind_of()]

Writes = Counter[tuple[str, str]]


def large_job() -> Mapping[str, Any]:
    servers = REPLICAS // 5
    return mxjob(servers=servers, workers=REPLICAS - servers - 1, cleanupPodPolicy="None")


def made(cluster: ClusterHarness) -> int:
    return sum(cluster.history.created.values())


def running(script: Script) -> bool:
    return all(part.started_count for part in script.parts.values())


async def passed_s(start: float, holds: Callable[[], bool]) -> float:
    """Return the seconds from the start until something held, as one who looks now and then."""
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110 - what is looked at cannot wake anybody.
            await asyncio.sleep(_LOOK_S)
    return time.perf_counter() - start


async def one_large_job() -> tuple[list[Figure], Writes]:
    manifest = large_job()
    script = script_of(manifest)
    async with start_cluster(kinds=_KINDS) as cluster:
        cluster.node.run_s = 1.0
        cluster.start()
        start = time.perf_counter()
        await cluster.submit(manifest, script=script)
        there_s = await passed_s(start, lambda: made(cluster) == REPLICAS)
        running_s = await passed_s(start, lambda: running(script))
        done_s = await passed_s(start, lambda: cluster.status().get("phase") == "Done")
        # Debounced writes follow within the debounce interval, if ever.
        await asyncio.sleep(11)
        figures = [
            Figure("all pods there", f"{there_s:.2f} s"),
            Figure("all pods running", f"{running_s:.2f} s"),
            Figure("done", f"{done_s:.2f} s"),
        ]
        return figures, cluster.history.writes()


def compare_to_goals(writes: Writes) -> list[Figure]:
    """Return the controller's writes by kind, and what they should be."""
    rows = [
        _at_most("create pods", writes.pop(("create", "pods"), 0), REPLICAS),
        _at_most("create services", writes.pop(("create", "services"), 0), 1),
        _at_most("patch the spec", writes.pop(("patch", "mxjobs.kubeflow.org"), 0), 1),
    ]
    status = writes.pop(("patch", "mxjobs/status.kubeflow.org"), 0)
    events = writes.pop(("create", "events"), 0) + writes.pop(("patch", "events"), 0)
    rows.append(_at_most("patch the status", status, STATUS_WRITES))
    rows.append(_at_most("write events", events, EVENT_WRITES))
    rows.append(_at_most("anything else", sum(writes.values()), 0))
    return rows


def _at_most(name: str, value: int, goal: int) -> Figure:
    return Figure(name, str(value), f"at most {goal}", value <= goal)


async def many_small_jobs() -> list[Figure]:
    async with start_cluster(kinds=_KINDS) as cluster:
        cluster.start()
        start = time.perf_counter()
        for number in range(JOBS):
            manifest = mxjob(name=f"job-{number}", cleanupPodPolicy="None")
            await cluster.submit(manifest, script=script_of(manifest))
        accepted_s = time.perf_counter() - start
        there_s = await passed_s(start, lambda: made(cluster) == JOBS * 4)
        names = [f"job-{number}" for number in range(JOBS)]
        done_s = await passed_s(
            start, lambda: all(cluster.status(name).get("phase") == "Done" for name in names)
        )
        return [
            Figure("all accepted", f"{accepted_s:.2f} s"),
            Figure("all pods there", f"{there_s:.2f} s"),
            Figure("pods made", f"{JOBS * 4 / there_s:.0f} /s"),
            Figure("all done", f"{done_s:.2f} s"),
        ]


async def main() -> bool:
    times, writes = await one_large_job()
    show(f"One job of {REPLICAS:,} replicas: seconds since it was sent", times)
    held = show("The controller's writes for it", compare_to_goals(writes))
    show(f"{JOBS} jobs of 4 replicas: seconds since the first was sent", await many_small_jobs())
    return held


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
