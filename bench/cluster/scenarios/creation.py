"""Jobs that are submitted at once: time, writes, processor time and memory until all run."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import ClassVar, Final

import attrs

from bench.cluster import plain_writers
from bench.cluster.api_server import METADATA_ONLY, ApiServer
from bench.cluster.audit import count_by_target, is_write
from bench.cluster.concurrency import each
from bench.cluster.controller_metrics import scrape
from bench.cluster.manifests import PYTORCH_JOBS, RUNNING_PODS, pytorch_job
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Operator, Program
from bench.cluster.scenario import TRAINING_OPERATOR, Bench, Figures, loop_lag, ratio
from bench.cluster.seen import Seen, has_condition
from bench.process_usage import cpu_s, rss_mb
from dlctl.dialects.service_annotation import SERVICE_ANNOTATION

# The plain writers are measured with fewer, which take the same time each.
_MAX_PLAIN: Final = 1000
# The operator may still write: that counts as well.
_REST_S: Final = 2.0


@attrs.frozen
class Times:
    """Seconds since the first job was sent; None if the limit was exceeded."""

    children_s: float | None
    pods_running_s: float | None
    running_s: float | None


@attrs.frozen
class Creation:
    """A number of jobs, and the replicas of each."""

    jobs: int
    replicas: int
    peer: ClassVar[str] = TRAINING_OPERATOR
    # Whether the replicas of a job share one service.
    shares_service: ClassVar[bool] = False

    async def measure(self, bench: Bench, program: Program) -> Figures:
        total = self.jobs * self.replicas
        plain = min(total, _MAX_PLAIN)
        sample_s, sample_running_s = await plain_writers.run_s(bench.server, plain)
        plain_s = sample_s * total / plain
        with program.run() as operator:
            mark, since = bench.audit.end(), time.monotonic()
            idle_mb, cpu_before_s = rss_mb(operator.pid), cpu_s(operator.pid)
            async with namespace(bench.server) as name:
                times = await create_jobs(
                    bench.server,
                    name,
                    self.jobs,
                    self.replicas,
                    shares_service=self.shares_service,
                )
                await asyncio.sleep(_REST_S)
                used_s = cpu_s(operator.pid) - cpu_before_s
                used_mb = rss_mb(operator.pid)
                requests = list(bench.audit.requests(mark))
                lag = loop_lag(operator, since, time.monotonic())
                reconciles = await _reconciles(operator)
        services = self.jobs if self.shares_service else total
        writes = count_by_target(entry for entry in requests if is_write(entry))
        return {
            "children_ratio": ratio(times.children_s, plain_s),
            "pods_running_ratio": ratio(times.pods_running_s, plain_s),
            # The nodes' part of both: how fast kwok starts pods that nobody controls.
            "plain_running_ratio": ratio(sample_running_s, sample_s),
            "running_ratio": ratio(times.running_s, plain_s),
            "plain_s": plain_s,
            "cpu_ms_per_child": 1000 * used_s / (total + services),
            "idle_rss_mb": idle_mb,
            "rss_mb": used_mb,
            "reconciles_per_job": None if reconciles is None else reconciles / self.jobs,
            "writes_per_job": sum(writes.values()) / self.jobs,
            **{f"{what} per job": count / self.jobs for what, count in sorted(writes.items())},
            **lag,
        }


async def _reconciles(operator: Operator) -> float | None:
    if not operator.url:
        return None
    return (await scrape(operator.url)).total("controller_runtime_reconcile_total")


@attrs.frozen
class OneService(Creation):
    """The same with one service for each job; the plain writers still create one for each pod."""

    jobs: int = 1
    replicas: int = 1000
    peer: ClassVar[str] = ""
    shares_service: ClassVar[bool] = True


async def create_jobs(
    server: ApiServer,
    namespace_: str,
    jobs: int,
    replicas: int,
    *,
    prefix: str = "job",
    shares_service: bool = False,
) -> Times:
    """Submit PyTorchJobs, and wait until all of them run."""
    path = PYTORCH_JOBS.format(namespace_)
    base = f"/api/v1/namespaces/{namespace_}"
    pods, services, started = Seen(), Seen(), Seen()
    running = Seen(has_condition("Running"))

    async def submit(number: int) -> None:
        job = pytorch_job(f"{prefix}-{number}", replicas)
        if shares_service:
            job["metadata"]["annotations"] = {SERVICE_ANNOTATION: "job"}
        await server.post(path, job)

    async with AsyncExitStack() as stack:
        for resource, seen, accept in (
            (f"{base}/pods", pods, METADATA_ONLY),
            (f"{base}/{RUNNING_PODS}", started, METADATA_ONLY),
            (f"{base}/services", services, METADATA_ONLY),
            (path, running, "application/json"),
        ):
            await stack.enter_async_context(server.watching(resource, seen.add, accept))
        start = time.perf_counter()
        await each(range(jobs), submit)
        pods_s = await pods.complete_s(jobs * replicas, start)
        services_s = await services.complete_s(jobs if shares_service else jobs * replicas, start)
        running_s = await running.complete_s(jobs, start)
        pods_running_s = await started.complete_s(jobs * replicas, start)
    known = pods_s is not None and services_s is not None
    children_s = max(pods_s or 0.0, services_s or 0.0) if known else None
    return Times(children_s, pods_running_s, running_s)
