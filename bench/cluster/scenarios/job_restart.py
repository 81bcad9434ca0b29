"""Jobs that are restarted as a whole: from the end of one rank until all have new pods."""

import time
from typing import Any, ClassVar, Final

import attrs

from bench.cluster import plain_writers
from bench.cluster.audit import count_by_target, is_write
from bench.cluster.manifests import (
    PYTORCH_JOBS,
    RUNNING_PODS,
    TRAINING_JOBS,
    pytorch_job,
    training_job,
)
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import Bench, Figures, loop_lag, ratio
from bench.cluster.seen import Seen, has_condition
from bench.process_usage import cpu_s

_NAME: Final = "ranks"
# As of a process that was killed, which a restart may fix.
_KILLED: Final = 137


@attrs.frozen
class JobRestart:
    """A TrainingJob of this many ranks; the plain writers delete and create as many pods."""

    ranks: int = 1000
    peer: ClassVar[str] = ""
    path: ClassVar[str] = TRAINING_JOBS
    killed: ClassVar[str] = "launcher"
    # Without a back-off, which would be most of the time.
    flags: ClassVar[tuple[str, ...]] = ("--restart-backoff=0.01",)

    async def measure(self, bench: Bench, program: Program) -> Figures:
        plain_s = await plain_writers.replace_s(bench.server, self.ranks)
        async with namespace(bench.server) as name:
            with program.run(*self.flags) as operator:
                base = f"/api/v1/namespaces/{name}/pods"
                await self._start(bench, name)
                old = {meta["uid"] for meta in await bench.server.metadata(base)}
                created = Seen(lambda pod: pod["metadata"]["uid"] not in old)
                mark, since, cpu_before_s = bench.audit.end(), time.monotonic(), cpu_s(operator.pid)
                async with bench.server.watching(base, created.add):
                    start = time.perf_counter()
                    await bench.server.patch_status(f"{base}/{_NAME}-{self.killed}", _killed())
                    created_s = await created.complete_s(self.ranks, start)
                used_s = cpu_s(operator.pid) - cpu_before_s
                lag = loop_lag(operator, since, time.monotonic())
                writes = count_by_target(filter(is_write, bench.audit.requests(mark)))
        return {
            "restart_ratio": ratio(created_s, plain_s),
            "plain_s": plain_s,
            "cpu_ms_per_rank": 1000 * used_s / self.ranks,
            "writes_per_rank": sum(writes.values()) / self.ranks,
            **{what: float(count) for what, count in sorted(writes.items())},
            **lag,
        }

    def manifest(self) -> dict[str, Any]:
        return training_job(_NAME, self.ranks)

    async def _start(self, bench: Bench, name: str) -> None:
        """Submit the job and wait until all its ranks run, as the plain writers do.

        Otherwise kwok would still start pods while it should take away others.
        """
        path, pods = self.path.format(name), f"/api/v1/namespaces/{name}/{RUNNING_PODS}"
        job, ranks = Seen(has_condition("Running")), Seen()
        async with (
            bench.server.watching(path, job.add, "application/json"),
            bench.server.watching(pods, ranks.add),
        ):
            await bench.server.post(path, self.manifest())
            start = time.perf_counter()
            for seen, count in ((job, 1), (ranks, self.ranks)):
                if await seen.complete_s(count, start) is None:
                    raise RuntimeError("the job does not run")


def _killed() -> dict[str, object]:
    terminated = {"exitCode": _KILLED, "reason": "Error"}
    container = {"name": "main", "image": "busybox", "imageID": "", "ready": False}
    container |= {"restartCount": 0, "state": {"terminated": terminated}}
    return {"phase": "Failed", "containerStatuses": [container]}


@attrs.frozen
class GangRestart(JobRestart):
    """The same for a PyTorchJob with a failure policy: no pod is created before all are gone."""

    path: ClassVar[str] = PYTORCH_JOBS
    killed: ClassVar[str] = "worker-0"

    def manifest(self) -> dict[str, Any]:
        job = pytorch_job(_NAME, self.ranks)
        policy = {"maxRestarts": 3, "restartStrategy": "BlockingRecreate"}
        job["spec"]["runPolicy"] = {"failurePolicy": policy}
        return job
