"""MPIJobs of v2beta1 that are submitted at once: time and writes until all run."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import ClassVar, Final

import attrs

from bench.cluster import plain_writers
from bench.cluster.api_server import METADATA_ONLY, ApiServer
from bench.cluster.audit import count_by_target, is_write
from bench.cluster.concurrency import each
from bench.cluster.manifests import MPI_JOBS, mpi_job
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import MPI_OPERATOR, Bench, Figures
from bench.cluster.seen import Seen, has_condition
from bench.process_usage import cpu_s, rss_mb
from dlctl.api.json_types import JSON

_LAUNCHERS: Final = "labelSelector=training.kubeflow.org%2Fjob-role%3Dlauncher"
_RUNNING: Final = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
}
# The operator may still write: that counts as well.
_REST_S: Final = 2.0


@attrs.frozen
class MPIJobs:
    """A number of jobs, and the workers of each."""

    jobs: int = 100
    workers: int = 4
    peer: ClassVar[str] = MPI_OPERATOR

    async def measure(self, bench: Bench, program: Program) -> Figures:
        pods = self.jobs * (self.workers + 1)
        plain_s = await plain_writers.create_s(bench.server, pods)
        with program.run() as operator:
            mark, cpu_before_s = bench.audit.end(), cpu_s(operator.pid)
            async with namespace(bench.server) as name:
                created_s, running_s = await self._run(bench.server, name)
                await asyncio.sleep(_REST_S)
                used_s, used_mb = cpu_s(operator.pid) - cpu_before_s, rss_mb(operator.pid)
                requests = list(bench.audit.requests(mark))
        writes = count_by_target(entry for entry in requests if is_write(entry))
        return {
            "pods_s": created_s,
            "running_s": running_s,
            "plain_s": plain_s,
            "writes_per_job": sum(writes.values()) / self.jobs,
            "cpu_s": used_s,
            "rss_mb": used_mb,
        }

    async def _run(self, server: ApiServer, name: str) -> tuple[float | None, float | None]:
        """Return the seconds until all pods had been created, and until all jobs ran."""
        path, pods_path = MPI_JOBS.format(name), f"/api/v1/namespaces/{name}/pods"
        pods, running = Seen(), Seen(has_condition("Running"))
        async with asyncio.TaskGroup() as starts, AsyncExitStack() as stack:
            started: set[str] = set()

            def start(pod: JSON) -> None:
                """Report a launcher as running, as its node would."""
                launcher: str = pod["metadata"]["name"]
                if launcher not in started:
                    started.add(launcher)
                    starts.create_task(server.patch_status(f"{pods_path}/{launcher}", _RUNNING))

            for resource, on_object, accept in (
                (pods_path, pods.add, METADATA_ONLY),
                (f"{pods_path}?{_LAUNCHERS}", start, METADATA_ONLY),
                (path, running.add, "application/json"),
            ):
                await stack.enter_async_context(server.watching(resource, on_object, accept))
            began = time.perf_counter()

            async def submit(number: int) -> None:
                await server.post(path, mpi_job(f"job-{number}", self.workers))

            await each(range(self.jobs), submit)
            created_s = await pods.complete_s(self.jobs * (self.workers + 1), began)
            running_s = await running.complete_s(self.jobs, began)
        return created_s, running_s
