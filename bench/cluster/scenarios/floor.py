"""What any operator needs for dlctl's pods and services: no controller is in the clock.

The plain writers' own pods are smaller, have no owner, and nobody reads what becomes of them. An
operator has to do both, in one process beside the API server.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import ClassVar

import attrs

from bench.cluster import plain_writers
from bench.cluster.api_server import METADATA_ONLY, ApiServer
from bench.cluster.concurrency import each
from bench.cluster.manifests import PYTORCH_JOBS, RUNNING_PODS, pytorch_job
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import Bench, Figures, ratio
from bench.cluster.seen import Seen
from dlctl.api.json_types import JSON
from dlctl.cli.frameworks import installed_frameworks
from dlctl.cli.manifests.job_renderer import job_renderer
from dlctl.cli.manifests.loading import job_kind
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds


@attrs.frozen
class Floor:
    """A number of jobs, whose children plain writers create, and the replicas of each."""

    jobs: int = 1
    replicas: int = 1000
    peer: ClassVar[str] = ""

    async def measure(self, bench: Bench, program: Program) -> Figures:
        plain_s = await plain_writers.create_s(bench.server, self.jobs * self.replicas)
        running = Seen()
        async with namespace(bench.server) as name, AsyncExitStack() as stack:
            base = f"/api/v1/namespaces/{name}"
            for resource, on_object, accept in (
                ("pods", _ignore, "application/json"),
                ("services", _ignore, "application/json"),
                (RUNNING_PODS, running.add, METADATA_ONLY),
            ):
                await stack.enter_async_context(
                    bench.server.watching(f"{base}/{resource}", on_object, accept)
                )
            kinds = served_kinds(installed_frameworks())
            start = time.perf_counter()
            await _create(bench.server, name, kinds, self.jobs, self.replicas)
            created_s = time.perf_counter() - start
            running_s = await running.complete_s(self.jobs * self.replicas, start)
        return {
            "floor_ratio": created_s / plain_s,
            "floor_running_ratio": ratio(running_s, plain_s),
            "plain_s": plain_s,
        }


async def _create(
    server: ApiServer, name: str, kinds: Sequence[Kind], jobs: int, replicas: int
) -> None:
    base = f"/api/v1/namespaces/{name}"
    submitted: list[JSON] = []

    async def submit(number: int) -> None:
        job = pytorch_job(f"job-{number}", replicas)
        submitted.append(await server.post(PYTORCH_JOBS.format(name), job))

    async def write(pair: Sequence[tuple[str, JSON]]) -> None:
        for resource, body in pair:
            await server.post(f"{base}/{resource}", body)

    await each(range(jobs), submit)
    await each((pair for job in submitted for pair in _children(kinds, job)), write)


def _children(kinds: Sequence[Kind], manifest: JSON) -> Iterator[Sequence[tuple[str, JSON]]]:
    """Yield the service and the pod of each replica, rendered when it is their turn."""
    kind = job_kind(kinds, manifest)
    assert kind is not None
    renderer = job_renderer(kind, manifest)
    for replica in renderer.job.replicas:
        yield (("services", renderer.service(replica)), ("pods", renderer.pod(replica)))


def _ignore(_: JSON) -> None:
    """Do nothing with an object that has been decoded, which an operator would have to."""
