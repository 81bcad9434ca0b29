"""The processor time of one more job, by the number of jobs that already live."""

import asyncio
from typing import ClassVar, Final

import attrs

from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import TRAINING_OPERATOR, Bench, Figures
from bench.cluster.scenarios.creation import create_jobs
from bench.process_usage import cpu_s, rss_mb

# Jobs that are measured at each level: the system counts processor time in ticks of 10 ms.
_MEASURED: Final = 50
_REST_S: Final = 2.0
# Of a core: an operator that uses less has nothing left to do, such as events that it postponed.
_IDLE: Final = 0.05
_IDLE_LIMIT_S: Final = 300.0


@attrs.frozen
class LiveJobs:
    """The highest number of live jobs, and the replicas of each."""

    jobs: int = 1000
    replicas: int = 4
    peer: ClassVar[str] = TRAINING_OPERATOR

    async def measure(self, bench: Bench, program: Program) -> Figures:
        live: list[float] = []
        cpu_ms: list[float] = []
        memory_mb: list[float] = []
        count = 0
        with program.run() as operator:
            async with namespace(bench.server) as name:
                for level in levels(self.jobs):
                    fill = max(0, level - count)
                    if fill:
                        await create_jobs(
                            bench.server, name, fill, self.replicas, prefix=f"fill-{level}"
                        )
                    await _until_idle(operator.pid)
                    before_s = cpu_s(operator.pid)
                    await create_jobs(
                        bench.server, name, _MEASURED, self.replicas, prefix=f"more-{level}"
                    )
                    await _until_idle(operator.pid)
                    live.append(count + fill)
                    cpu_ms.append(1000 * (cpu_s(operator.pid) - before_s) / _MEASURED)
                    memory_mb.append(rss_mb(operator.pid))
                    count += fill + _MEASURED
        return {
            "live_jobs": live,
            "cpu_ms_per_job": cpu_ms,
            "memory_mb": memory_mb,
            "flatness": cpu_ms[-1] / cpu_ms[0],
        }


async def _until_idle(pid: int) -> None:
    async with asyncio.timeout(_IDLE_LIMIT_S):
        used_s = float("inf")
        while used_s > _IDLE * _REST_S:
            before_s = cpu_s(pid)
            await asyncio.sleep(_REST_S)
            used_s = cpu_s(pid) - before_s


def levels(highest: int) -> list[int]:
    """Return 10, 100 and so on below the highest number, and that."""
    found = []
    level = 10
    while level < highest:
        found.append(level)
        level *= 10
    return [*found, highest]
