"""Many jobs one after the other, a fixed number at the same time, each to its end."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import ClassVar, Final

import attrs

from bench.cluster.audit import is_write
from bench.cluster.concurrency import each
from bench.cluster.manifests import PYTORCH_JOBS, pytorch_job
from bench.cluster.namespaces import LIMIT_S, namespace
from bench.cluster.operators import Operator, Program
from bench.cluster.scenario import TRAINING_OPERATOR, Bench, Figures, loop_lag
from bench.process_usage import cpu_s, rss_mb
from dlctl.api.json_types import JSON

_AT_ONCE: Final = 200
# Each change of a pod costs the controller manager a look at every service of its namespace.
_JOBS_PER_NAMESPACE: Final = 200
_ALL_JOBS: Final = "/apis/kubeflow.org/v1/pytorchjobs"
# Points of the series.
_PARTS: Final = 10


@attrs.frozen
class Sustained:
    """A number of jobs in all, and the replicas of each. A job ends when its master does.

    Its other pods stay, as they do by default. Two hundred jobs share a namespace.
    """

    jobs: int = 10_000
    replicas: int = 4
    peer: ClassVar[str] = TRAINING_OPERATOR
    run_policy: ClassVar[JSON] = {}

    async def measure(self, bench: Bench, program: Program) -> Figures:
        with program.run() as operator:
            idle_mb, cpu_before_s = rss_mb(operator.pid), cpu_s(operator.pid)
            async with AsyncExitStack() as stack:
                names = [
                    await stack.enter_async_context(namespace(bench.server))
                    for _ in range(0, self.jobs, _JOBS_PER_NAMESPACE)
                ]
                mark, since = bench.audit.end(), time.monotonic()
                samples = await self._finish_all(bench, names, operator)
                lasted_s, used_s = time.monotonic() - since, cpu_s(operator.pid) - cpu_before_s
                lag = loop_lag(operator, since, time.monotonic())
                used_mb = rss_mb(operator.pid)
                writes = sum(map(is_write, bench.audit.requests(mark)))
        return {
            "jobs_per_s": self.jobs / lasted_s,
            "cpu_ms_per_job": 1000 * used_s / self.jobs,
            "idle_rss_mb": idle_mb,
            "rss_mb": used_mb,
            "writes_per_job": writes / self.jobs,
            "finished_jobs": [float(one.finished) for one in samples],
            "finished_per_s": [one.jobs_per_s for one in samples],
            "cpu_ms_per_job_by_part": [one.cpu_ms_per_job for one in samples],
            "memory_mb": [one.memory_mb for one in samples],
            **lag,
        }

    async def _finish_all(
        self, bench: Bench, names: Sequence[str], operator: Operator
    ) -> list["Sample"]:
        events: dict[tuple[str, str], asyncio.Event] = defaultdict(asyncio.Event)
        progress = _Progress(operator.pid, max(1, self.jobs // _PARTS))

        def on_job(job: JSON) -> None:
            for condition in job.get("status", {}).get("conditions") or ():
                if condition["status"] == "True":
                    events[job["metadata"]["name"], condition["type"]].set()

        async def run(number: int) -> None:
            job, name = f"job-{number}", names[number % len(names)]
            master = f"/api/v1/namespaces/{name}/pods/{job}-master-0"
            created = pytorch_job(job, self.replicas, self.run_policy)
            await bench.server.post(PYTORCH_JOBS.format(name), created)
            async with asyncio.timeout(LIMIT_S):
                await events[job, "Running"].wait()
                await bench.server.patch_status(master, _succeeded())
                await events[job, "Succeeded"].wait()
            progress.finish_one()

        async with bench.server.watching(_ALL_JOBS, on_job, "application/json"):
            await each(range(self.jobs), run, at_once=_AT_ONCE)
        return progress.samples


@attrs.frozen
class SustainedTTL(Sustained):
    """The same, with jobs that leave nothing behind a minute after their end."""

    run_policy: ClassVar[JSON] = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60}


@attrs.frozen
class Sample:
    """One part of the jobs: how fast they finished, and what they cost."""

    finished: int
    jobs_per_s: float
    cpu_ms_per_job: float
    memory_mb: float


@attrs.define
class _Progress:
    """Takes a sample each time that another part of the jobs has finished."""

    pid: int
    part: int
    finished: int = 0
    samples: list[Sample] = attrs.field(factory=list)
    _since: float = attrs.field(factory=time.monotonic)
    _cpu_s: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cpu_s = cpu_s(self.pid)

    def finish_one(self) -> None:
        self.finished += 1
        if self.finished % self.part:
            return
        now, used_s = time.monotonic(), cpu_s(self.pid)
        self.samples.append(
            Sample(
                self.finished,
                self.part / (now - self._since),
                1000 * (used_s - self._cpu_s) / self.part,
                rss_mb(self.pid),
            )
        )
        self._since, self._cpu_s = now, used_s


def _succeeded() -> JSON:
    terminated = {"exitCode": 0, "reason": "Completed"}
    container = {"name": "pytorch", "image": "busybox", "imageID": "", "ready": False}
    container |= {"restartCount": 0, "state": {"terminated": terminated}}
    return {"phase": "Succeeded", "containerStatuses": [container]}
