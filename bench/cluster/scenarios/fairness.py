"""Small jobs beside a large one that is being created: they should take as long as without it."""

import asyncio
import datetime
import itertools
import re
import statistics
import time
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import attrs

from bench.cluster.api_server import ApiServer
from bench.cluster.manifests import JOB_LABEL, PYTORCH_JOBS, pytorch_job
from bench.cluster.namespaces import LIMIT_S, namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import TRAINING_OPERATOR, Bench, Figures, loop_lag
from bench.cluster.seen import Seen

# The end of a pod's name.
_REPLICA: Final = re.compile(r"-(master|worker)-\d+$")
_IDLE_RUNS: Final = 5
_PAUSE_S: Final = 0.5
# The small jobs start when this part of the large one is there.
_STARTED: Final = 0.02


@attrs.frozen
class _SmallJob:
    """When a job was submitted, on the audit log's clock, and how long until its pods were seen.

    A busy server shows pods to a watch long after it has created them.
    """

    name: str
    submitted_at: float
    # The limit if they never were.
    seen_s: float


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
                    await self._small_job(bench.server, name, f"idle-{n}")
                    for n in range(_IDLE_RUNS)
                ]
                mark, since = bench.audit.end(), time.monotonic()
                beside, large_s = await self._beside_large_job(bench.server, name)
                lag = loop_lag(operator, since, time.monotonic())
                created_at = _pods_created_at(bench.audit.requests(mark))
        seen = [job.seen_s for job in beside]
        created = [
            created_at[job.name] - job.submitted_at for job in beside if job.name in created_at
        ]
        return {
            "idle_s": statistics.median(job.seen_s for job in idle),
            "beside_s": statistics.median(seen) if seen else None,
            "beside_worst_s": max(seen, default=None),
            "beside_created_s": statistics.median(created) if created else None,
            "beside_created_worst_s": max(created, default=None),
            "small_jobs": float(len(beside)),
            "large_s": large_s,
            **lag,
        }

    async def _beside_large_job(
        self, server: ApiServer, name: str
    ) -> tuple[list[_SmallJob], float | None]:
        pods = Seen()
        async with server.watching(_pods_of(name, "large"), pods.add):
            start = time.perf_counter()
            await server.post(PYTORCH_JOBS.format(name), pytorch_job("large", self.replicas))
            await pods.complete_s(max(1, int(_STARTED * self.replicas)), start)
            beside = []
            for number in itertools.count():
                if len(pods) >= self.replicas or time.perf_counter() - start > LIMIT_S:
                    break
                beside.append(await self._small_job(server, name, f"beside-{number}"))
                await asyncio.sleep(_PAUSE_S)
            return beside, await pods.complete_s(self.replicas, start)

    async def _small_job(self, server: ApiServer, name: str, job: str) -> _SmallJob:
        pods = Seen()
        async with server.watching(_pods_of(name, job), pods.add):
            submitted_at, start = time.time(), time.perf_counter()
            await server.post(PYTORCH_JOBS.format(name), pytorch_job(job, self.small))
            taken_s = await pods.complete_s(self.small, start)
        return _SmallJob(job, submitted_at, LIMIT_S if taken_s is None else taken_s)


def _pods_created_at(requests: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return when the last pod of each job was created, by an audit log, in seconds since 1970."""
    found: dict[str, float] = {}
    for entry in requests:
        target = entry.get("objectRef", {})
        if entry["verb"] == "create" and target.get("resource") == "pods":
            job = _REPLICA.sub("", target.get("name", ""))
            time_ = datetime.datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
            found[job] = max(found.get(job, 0.0), time_)
    return found


def _pods_of(name: str, job: str) -> str:
    return f"/api/v1/namespaces/{name}/pods?labelSelector={JOB_LABEL}%3D{job}"
