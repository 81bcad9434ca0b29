"""Small jobs beside a large one that is being created: they should take as long as without it."""

import asyncio
import itertools
import statistics
import time
from typing import ClassVar, Final

import attrs

from bench.cluster.api_server import ApiServer
from bench.cluster.manifests import JOB_LABEL, PYTORCH_JOBS, pytorch_job
from bench.cluster.namespaces import LIMIT_S, namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import TRAINING_OPERATOR, Bench, Figures, loop_lag
from bench.cluster.seen import Seen

_IDLE_RUNS: Final = 5
_PAUSE_S: Final = 0.5
# The small jobs start when this part of the large one is there.
_STARTED: Final = 0.02


@attrs.frozen
class Fairness:
    """A large job of this many replicas, and small ones one after the other."""

    replicas: int = 5000
    small: int = 4
    peer: ClassVar[str] = TRAINING_OPERATOR

    async def measure(self, bench: Bench, program: Program) -> Figures:
        with program.run() as operator:
            async with namespace(bench.server) as name:
                idle = [
                    await self._small_job_s(bench.server, name, f"idle-{n}")
                    for n in range(_IDLE_RUNS)
                ]
                since = time.monotonic()
                beside, large_s = await self._beside_large_job(bench.server, name)
                lag = loop_lag(operator, since, time.monotonic())
        idle_s = statistics.median(idle)
        return {
            "idle_s": idle_s,
            "beside_s": statistics.median(beside) if beside else None,
            "beside_worst_s": max(beside, default=None),
            "delay_s": max(beside) - idle_s if beside else None,
            "small_jobs": float(len(beside)),
            "large_s": large_s,
            **lag,
        }

    async def _beside_large_job(
        self, server: ApiServer, name: str
    ) -> tuple[list[float], float | None]:
        pods = Seen()
        async with server.watching(_pods_of(name, "large"), pods.add):
            start = time.perf_counter()
            await server.post(PYTORCH_JOBS.format(name), pytorch_job("large", self.replicas))
            await pods.complete_s(max(1, int(_STARTED * self.replicas)), start)
            beside = []
            for number in itertools.count():
                if len(pods) >= self.replicas or time.perf_counter() - start > LIMIT_S:
                    break
                beside.append(await self._small_job_s(server, name, f"beside-{number}"))
                await asyncio.sleep(_PAUSE_S)
            return beside, await pods.complete_s(self.replicas, start)

    async def _small_job_s(self, server: ApiServer, name: str, job: str) -> float:
        """Return the seconds until a small job has all of its pods; the limit if it never has."""
        pods = Seen()
        async with server.watching(_pods_of(name, job), pods.add):
            start = time.perf_counter()
            await server.post(PYTORCH_JOBS.format(name), pytorch_job(job, self.small))
            taken_s = await pods.complete_s(self.small, start)
        return LIMIT_S if taken_s is None else taken_s


def _pods_of(name: str, job: str) -> str:
    return f"/api/v1/namespaces/{name}/pods?labelSelector={JOB_LABEL}%3D{job}"
