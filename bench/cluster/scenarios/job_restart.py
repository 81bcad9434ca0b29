"""A job that is restarted as a whole: from the end of one rank until all have new pods."""

import time
from typing import ClassVar, Final

import attrs

from bench.cluster import plain_writers
from bench.cluster.audit import count_by_target, is_write
from bench.cluster.manifests import TRAINING_JOBS, training_job
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

    async def measure(self, bench: Bench, program: Program) -> Figures:
        plain_s = await plain_writers.replace_s(bench.server, self.ranks)
        async with namespace(bench.server) as name:
            # Without a back-off, which would be most of the time.
            with program.run("--restart-backoff=0.01") as operator:
                base = f"/api/v1/namespaces/{name}/pods"
                await self._start(bench, name)
                old = {meta["uid"] for meta in await bench.server.metadata(base)}
                created = Seen(lambda pod: pod["metadata"]["uid"] not in old)
                mark, since, cpu_before_s = bench.audit.end(), time.monotonic(), cpu_s(operator.pid)
                async with bench.server.watching(base, created.add):
                    start = time.perf_counter()
                    await bench.server.patch_status(f"{base}/{_NAME}-launcher", _killed())
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

    async def _start(self, bench: Bench, name: str) -> None:
        path, running = TRAINING_JOBS.format(name), Seen(has_condition("Running"))
        async with bench.server.watching(path, running.add, "application/json"):
            await bench.server.post(path, training_job(_NAME, self.ranks))
            if await running.complete_s(1, time.perf_counter()) is None:
                raise RuntimeError("the job does not run")


def _killed() -> dict[str, object]:
    terminated = {"exitCode": _KILLED, "reason": "Error"}
    container = {"name": "main", "image": "busybox", "imageID": "", "ready": False}
    container |= {"restartCount": 0, "state": {"terminated": terminated}}
    return {"phase": "Failed", "containerStatuses": [container]}
